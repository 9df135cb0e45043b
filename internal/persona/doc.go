// Package persona has the dialects of the inits that fdinit stands in for: tini (and
// docker-init), dumb-init and catatonit (and podman-init). A dialect changes how fdinit
// is asked and what it answers, never how it works: it is one more way to fill a
// config.Config.
//
// The dialects were read off the peers themselves: tini 0.19.0, dumb-init 1.2.5 and
// catatonit 0.2.1. docs/compatibility.md lists where fdinit differs and why;
// test/compat holds both to it. Like package config this one runs freestanding and has
// no side effects. It is not for behaviour: that belongs into package reaper, driven
// by data.
package persona
