package main

// version and commit are set at link time (-X main.version=… -X main.commit=…). commit
// has at most seven digits, because old versions of dockerd cut it without looking.
var (
	version = "0.1.0"
	commit  = ""
)

func versionLine() string {
	line := "fdinit version " + version
	if commit != "" {
		line += " - git." + commit[:min(len(commit), 7)]
	}
	return line
}
