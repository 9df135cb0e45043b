package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// quickly says what a report of a quick run is worth.
const quickly = "a quick run, to look at rather than to publish"

// options are what the command line says.
type options struct {
	fdinit    string
	pabloruth string
	out       string // where the report goes; empty is standard output
	runs      int    // 0 is as many as there usually are
	quick     bool
	wanted    []string // sections, or documents
	check     string
	flags     []string // those that the report has to tell, but for documents
}

func isDocument(name string) bool { return slices.Contains(documents, name) }

func parseOptions(args []string) (*options, error) {
	o := &options{}
	var only string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&o.fdinit, "fdinit", "../bin/fdinit", "the fdinit `binary` to measure")
	fs.StringVar(&o.pabloruth, "go-init", "go-init", "the `binary` of github.com/pablo-ruth/go-init, left out when there is none")
	fs.StringVar(&o.out, "out", "../docs/bench", "write the report into this `directory`")
	fs.IntVar(&o.runs, "runs", 0, "repeat start to exit so often (1000, quick 200); sweep: rounds (20, quick 5); jvm: executions (10000, quick 500)")
	fs.BoolVar(&o.quick, "quick", false, quickly)
	fs.StringVar(&only, "only", "", "measure only these `sections`, of "+strings.Join(sections, ",")+", or these documents, of "+strings.Join(documents, ",")+", and print to stdout unless -out is given")
	fs.StringVar(&o.check, "check", "", "a quick run against the claims in this `file`; no report is written")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.runs < 0 {
		return nil, fmt.Errorf("-runs=%d: a positive number is needed", o.runs)
	}
	o.wanted = sections
	if only != "" {
		var err error
		if o.wanted, err = choose(only); err != nil {
			return nil, fmt.Errorf("-only=%s: %w", only, err)
		}
	}
	outGiven := false
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "out":
			outGiven = true
		case "fdinit", "go-init": // paths of the machine
		case "quick":
			if o.quick {
				o.flags = append(o.flags, "-quick")
			}
		case "only":
			// A document has a target of its own.
			if !isDocument(o.wanted[0]) {
				o.flags = append(o.flags, "-only="+only)
			}
		default:
			o.flags = append(o.flags, "-"+f.Name+"="+f.Value.String())
		}
	})
	if only != "" && !outGiven {
		// A part must not replace the whole that is checked in.
		o.out = ""
	}
	return o, nil
}

// choose reads a list of sections or of documents.
func choose(list string) ([]string, error) {
	wanted := strings.Split(list, ",")
	if slices.ContainsFunc(wanted, isDocument) {
		for _, name := range wanted {
			if !isDocument(name) {
				return nil, fmt.Errorf("%q has no report of its own, unlike %s", name, strings.Join(documents, " and "))
			}
		}
		return wanted, nil
	}
	for _, name := range wanted {
		if !slices.Contains(sections, name) {
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(slices.Concat(sections, documents), ", "))
		}
	}
	// 200 instances are part of what idle means.
	if slices.Contains(wanted, "idle") && !slices.Contains(wanted, "fleet") {
		wanted = append(wanted, "fleet")
	}
	return wanted, nil
}
