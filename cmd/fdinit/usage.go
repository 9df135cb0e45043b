package main

// usage is the one description of the command line; the README shows it, too.
const usage = `Usage: fdinit [OPTION...] [--] COMMAND [ARG...]
       fdinit --install=PATH [--install-as=NAMES]

Run COMMAND as a container's main process, under an init that closes inherited
file descriptors, lowers a pathological limit on open files, reaps zombies,
forwards signals, and exits with COMMAND's status.

Options end at the first argument that is not an option.

  --nofile=auto|keep|SOFT[:HARD]
                      limit on open files; auto, the default, lowers a soft limit
                      above 1048576 to 65536 and a hard one to 1048576 and leaves
                      lower ones alone; SOFT may be "hard"; without HARD the
                      hard limit stays and SOFT is cut to it     [FDINIT_NOFILE]
  --rlimit=NAME=SOFT[:HARD]
                      any limit of setrlimit(2), such as core=0:0 or
                      memlock=hard; without HARD the hard limit stays and SOFT is
                      cut to it; repeatable; the variable takes several, separated
                      by white space                             [FDINIT_RLIMIT]
  --keep-fds=LIST     file descriptors to pass on to COMMAND besides 0, 1 and 2:
                      3,5-7 or all. Socket activation (LISTEN_FDS) needs no
                      option                                   [FDINIT_KEEP_FDS]
  -g, --group         forward signals to COMMAND's whole process group
                                                                [FDINIT_GROUP=1]
  -p, --parent-death-signal=SIGNAL
                      send SIGNAL to fdinit, and so to COMMAND, when fdinit's
                      parent ends
  --log=warn|info|debug
                      say on stderr what happens while COMMAND runs; warn, the
                      default, says nothing unless something is wrong
                                                                   [FDINIT_LOG]
  --log-format=text|json
                      format of the log and of error messages; text is the
                      default                               [FDINIT_LOG_FORMAT]
  --install=PATH      copy fdinit to PATH, or into it if it is a directory, for an
                      image without cp, and do nothing else
  --install-as=NAMES  link other names, such as tini,dumb-init, to that copy
  -h, --help          print this text
  -V, --version       print the version

Called as docker-init, tini, tini-static, dumb-init, catatonit or podman-init,
fdinit takes that program's options and answers as it does.

Each option but --rlimit may be given once. The variables in brackets do the same
as the options, which win over them; an empty variable is an error.
Signals and limits may be given by name, with or without SIG or RLIMIT_ and in
any case, or by number.

Exit status: COMMAND's, or 128+N if signal N ended it; 125 if fdinit itself
failed, 126 if COMMAND cannot be executed, 127 if it cannot be found.
`

// buildCommand links the entry point in.
const buildCommand = "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -E=github.com/fdinit/fdinit/internal/freestanding.Entry' github.com/fdinit/fdinit/cmd/fdinit"
