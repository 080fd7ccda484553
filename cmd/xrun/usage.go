package main

import "github.com/xwarp/xwarp/cmd/internal/cli"

// usage returns what --help prints.
func usage() string { return cli.Configured(usageText, 23) }

const usageText = `usage: xrun [-n N] [OPTIONS] PROGRAM [ARGS...]
       [: [-n N] [-host A,B] [-env NAME VALUE] [-wdir DIR] PROGRAM [ARGS...]]...

Starts N processes of PROGRAM, the ranks of an MPI job, and waits for them. Of
several programs, with a colon between them, each has N ranks (default 1) that
follow those of the one before; what is for all stands before the first one.

Where
  -n, -np N            number of ranks (default: as many as fit, one per host
                       where that is not said)
  -ppn N               ranks that fit on each host
  --testbed H          make H hosts on this machine (network namespaces on a
                       cable or switch) and remove them afterwards; needs root,
                       and without it the ranks run on loopback instead
  --hosts A,B:2,...    run on these machines; :2 is the number of ranks that fit
                       (also --host A,B:2), and n[01-16]:2 are 16 hosts, as in
                       Slurm's lists; an IPv6 address is a host as it is, as in
                       fd00::1,fd00::2, and takes brackets where a number
                       follows it: [fd00::1]:2
  --hostfile, -f FILE  the same from a file with a host per line, as A, A:2 or
                       A slots=2 max_slots=4; # starts a comment, - is the
                       standard input (also --machinefile FILE); behind a host,
                       binding=WHAT is --bind-to for its ranks, as in
                       A:2 binding=user:0,1, and user=NAME logs in there
  --ghosts K           start K more processes on each host, at most 64, which
                       serve windows of its ranks while these compute (default
                       0); ranks do not see them; not with --queues per-rank,
                       nor for programs of other MPIs;
                       see docs/architecture/ghosts.md
  $XWARP_GHOST_FAILURE
  $XWARP_GHOST_BINDING
  $XWARP_ASYNC
  $XWARP_PROGRESS
                       see docs/architecture/threads.md
  --oversubscribe      put more ranks on the hosts than fit, in rounds, up to
                       max_slots
  --map-by WHAT        which places ranks take first: slot (fill a host, then
                       the next; the default), node (to the hosts in turn), core
                       (as slot, and bind to it), numa or socket (fill hosts,
                       and there to the NUMA nodes or sockets in turn, and bind
                       to it), hwthread (as core); ppr:N:node is slot with -ppn
                       N; :pe=N behind it gives each rank N cores
  --bind-to WHAT       tie each rank to a core, to N cores (core:N), to a
                       hwthread (or rr), to the processors of a numa node or
                       socket, to processors of your choice (user:0,1+2,3 are
                       three places, taken in turn on each host) or to none
                       (default: core in a testbed with a processor for every
                       rank and ghost, else what --map-by says, else none)
  --cpu-set LIST       use only these processors of each host, as in 0-3,8
  --report-bindings    say where each rank runs, and what it is tied to (also
                       --display-map, --print-rank-map)
  --user NAME          user that the ranks run as, if xrun is run by root: they
                       need no privileges with --queues shared or steered or
                       kernel UDP
  $XWARP_ABI
                       see docs/ABI.md
  --wdir, --wd DIR     directory to start in, on every host (default: this one).
                       A PROGRAM without a slash is looked for there in PATH, or
                       that of -x PATH=..., one with a slash from this directory

How they talk
  $XWARP_FABRIC
                       xrun says which
  $XWARP_TRANSPORT
  --queues Q           how the ranks of a host use its NIC over AF_XDP: shared
                       (one queue for all; the default), steered (each has its
                       own on the same NIC, which steers by n-tuple filters; one
                       that cannot is shared) or per-rank (each is given a NIC,
                       in a --testbed only; the default there, unless another
                       --user or --ghosts is set)
  $XWARP_DEVICE
                       It is the same on all hosts; where their routes part,
                       kernel UDP on that of the default route. With several,
                       each on a network of its own, large messages use all of
                       them at once, and ranks go on over the others while one
                       is dead; those of a host share each of them; for
                       --transport rd
  $XWARP_BUSY_POLL
                       Where it cannot, a line says so. The agents set
                       napi_defer_hard_irqs and gro_flush_timeout of the card to
                       2 and 200000 ns, and back at the end. Of no use with more
                       ranks than cores; see docs/NICS.md
  --mtu M              MTU of the testbed's devices in bytes (default 9000)
  $XWARP_SECURE
                       Shared memory of a host is not encrypted
  $XWARP_IPV6
                       Those of a testbed, too. It is so anyway where a host is
                       named by an IPv6 address or has no other
  --switch S           what joins the testbed's hosts: cable (two of them),
                       bridge or xdp (default: cable, else xdp). tcpdump sees
                       AF_XDP frames on a bridge only: ip netns exec
                       xwarp-PID-...-sw tcpdump -ni any -Q in udp

What you see
  --tag-output, -l     put "[rank] " in front of every line (also
                       --prepend-rank)
  --ordered-output     hold back the standard output of a rank until those
                       before it have ended (default: line by line as it comes;
                       a line waits for its end, and without one for the end of
                       the job, but on a terminal what the rank that reads it
                       has begun is shown after 0.2 s: it may be a question).
                       What waits is kept in memory up to 1 MiB for each rank,
                       and beyond in files in $TMPDIR that have no name
  --outfile-pattern P  write the standard output of the ranks into files here,
                       named with %r for the rank (%0r: with zeros in front),
                       %h for its host and %% for a %
  --errfile-pattern P  the same for their error output
  --output-filename D  the same for both, where Open MPI has them, in
                       D/1/rank.%0r/stdout and .../stderr; D:nojobid leaves
                       the 1 out. Nothing is copied here, as with D:nocopy
  --merge-stderr-to-stdout
                       let the error output be part of the standard output
  --stdin, -s R        which rank reads the standard input (default 0), or all,
                       or none
  --stats              at the end, print what the ranks have sent, received and
                       called, and how long that took, to the error output;
                       ranks that were killed count up to then. Also what
                       carries messages to other hosts (AF_XDP: mode, copy or
                       zero-copy, device, queues, buffers per frame, busy
                       polling), on which of several queues each rank's frames
                       came in, and what was lost there: frames on queues
                       without a socket, ...; and of windows the epochs, who has
                       done the operations (loads and stores, the own rank, the
                       target, a ghost), and for whom each rank has waited most
  --json FILE          write the same, rank by rank, as JSON (-: standard
                       output)
  --trace FILE         write a time line of all calls and messages, which
                       ui.perfetto.dev and chrome://tracing open (-: standard
                       output)
  --trace-events N     calls and messages of each rank that the time line keeps,
                       the last ones, 48 bytes of memory each (default 65536)
  --report-state       when the job fails, print what the other ranks are doing
                       before they are ended, as --timeout does
  --quiet, -q          do not say what the job runs on; so does xrun when it is
                       called mpiexec, or $MPIEXEC_TIMEOUT is set

Starting
  --start-timeout D    time for hosts to answer and for ranks to reach the start
                       of the job (default 60s; 0: for ever)
  --disable-auto-cleanup (as hydra has it)
                       when a rank or a host dies, tell the others and let them
                       go on (fault tolerance: Comm.Shrink and its like); the
                       exit status is the same
  --timeout D          end the job if it takes longer: 30s, 5m, or a number of
                       seconds (default 0: for ever, or what MPIEXEC_TIMEOUT in
                       the environment says). Before, print what each
                       rank does: the call of MPI that it is in, for how long
                       and what for, and its stacks; of other programs, what the
                       kernel knows. So Open MPI's --report-state-on-timeout and
                       --get-stack-traces are accepted and need not be given
  -x NAME[=VALUE]      set a variable for the ranks (repeatable); without VALUE
                       to that of xrun, which other hosts do not see otherwise
  -genv NAME VALUE     the same, as mpiexec has it; also as NAME=VALUE
  -env NAME VALUE      the same for the ranks of one of several programs
  -genvlist A,B,...    set these to what they are here, as -x does;
                       -envlist A,B,... does for one of several programs
  --launcher ssh       how to reach --hosts (the only one by name); none is
                       needed for this machine, by its name or as localhost
  --launcher-exec CMD  reach a host by running CMD HOST AGENT ARGS... instead
  --agent-path PATH    where xrun is on the hosts (default: where it is here)

  --configfile FILE    take programs, with their options, from the lines of a
                       file, as if there were a colon between them; # starts a
                       comment, and \ at the end goes on in the next line. What
                       the command line says counts more (also --app FILE)
  --allow-run-as-root, --verbose, -v
                       as it is: root may, and xrun says what it does

  --version, -V        say which version this is, and do nothing (also --info)
  --help               say this

Without --hosts, --hostfile and --testbed the hosts are those of the first of
these variables that is set, as for mpiexec of MPICH: HYDRA_HOST_FILE (a file
as for --hostfile), SLURM_JOB_NODELIST or SLURM_NODELIST (how many ranks fit:
SLURM_TASKS_PER_NODE, else SLURM_NTASKS), LSB_MCPU_HOSTS or LSB_HOSTS,
PE_HOSTFILE, PBS_NODEFILE. Without -n there is a rank for each place. To run on
this machine alone in spite of them: --hosts localhost.

Options may be written with one dash or two, and as --name value or
--name=value. Options after PROGRAM belong to it. SIGINT, SIGTERM, SIGHUP,
SIGUSR1 and SIGUSR2 are passed on to all ranks; a second one of the first two
kills them. SIGTSTP (Ctrl-Z) stops the ranks and then xrun, and SIGCONT (fg, bg)
lets all go on. At SIGQUIT (Ctrl-\) xrun prints what each rank does, as for
--timeout, and the job goes on.

Exit status
  0        all ranks ended with status 0
  1-123    that of the first rank that failed, or the code it aborted with;
           1 also for a rank that left without Finalize
  124      a host or rank did not start in time, or --timeout was over
  125      xrun could not do its work: bad usage, host lost, no testbed, output
           that could not be written
  126      PROGRAM cannot be run
  127      there is no PROGRAM
  128+S    the first rank that failed was killed by signal S; a rank that was
           killed comes before those that exit because they notice it

Environment
  $*

Variables that are options, too, are for ranks of other launchers; then
nobody changes settings of network cards. A name that is nearly one of these is
an error. docs/CONFIG.md lists the values, and who reads them.

Examples
  xrun -n 4 ./app                        4 ranks on this machine, shared memory
  sudo xrun -n 4 --testbed 2 ./app       on two hosts made for it, AF_XDP
  sudo xrun -n 2 --testbed 2 --fabric udp --mtu 1500 ./app
  xrun --hosts a,b,c ./app               three machines, one rank each
  xrun --hosts a:8,b:8 --device eth1 --user alice ./app
                                         two machines, eight ranks on each NIC
  xrun -n 8 --hosts a:4,b:4 --fabric udp --tag-output ./app -v input.mtx
  xrun -n 1 ./server : -n 3 -env ID 7 ./client -v
                                         four ranks that run two programs
  xrun -host a ./server : -host b,c -n 8 ./client
                                         each on machines of its own
  xrun --hostfile cluster -ppn 4 --map-by numa -x DEBUG=1 --timeout 1h ./app
  xrun --bind-to core:2 ./app            in an allocation, on all its hosts
`
