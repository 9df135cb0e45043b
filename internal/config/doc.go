// Package config turns argv and environment into a Config: what fdinit is to do,
// as data. It has fdinit's own dialect and the FDINIT_* variables, which count under
// every name that fdinit answers to; package persona has the other dialects.
//
// It runs freestanding, so it neither allocates nor makes error values: a problem is
// a code and the place of the offending text, which the hosted side turns into words.
// It has no side effects, so that nothing was done when something is wrong.
package config
