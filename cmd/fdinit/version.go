package main

// commit is set at link time (-X main.commit=…).
var commit = ""

const version = "0.1.0"

// commitSuffix is how dockerd wants to be told the commit, which it looks for after
// " - git.". It has at most seven digits because old versions of dockerd cut it to that
// without looking.
func commitSuffix() string {
	if commit == "" {
		return ""
	}
	return " - git." + commit[:min(len(commit), 7)]
}
