//go:build !amd64 && !arm64

package main

const elfMachine = 0

var codeTrue, codeStamp []byte

func codeStorm(int) []byte { return nil }

func codeFork([]byte) []byte { return nil }
