// Command bench measures fdinit side by side with the inits that people run
// today: tini, tini-static, dumb-init, catatonit and two ordinary Go programs.
//
// It answers one question, "what does this init cost on top of the command?",
// and it answers it with ratios: all contenders run in the same round, in a
// random order, on the same machine, because on a shared virtual machine the
// absolute figures of two moments cannot be compared. Do not quote the
// milliseconds of one report against those of another.
//
// Two documents beside it have no contenders: what each way to close
// descriptors costs (sweep), and a Java virtual machine that executes commands
// (jvm).
//
// Nothing here is part of the fdinit binary; the module is separate so that
// the drawing library stays out of its go.sum.
package main
