package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/cmd/internal/cli"
)

const helpHead = `usage: xperf TEST [HOST | --testbed] [FLAGS]
       xperf compare [TABLE] --testbed [FLAGS]
       xperf memory [FLAGS]
       xperf plot FILE... [--plot OUT.svg]
       xperf serve [FLAGS]

Measures latency, bandwidth and message rate between two ends.

  xperf TEST [FLAGS]             server: waits for one client
  xperf TEST HOST [FLAGS]        client: measures against the server on HOST
  xperf TEST --testbed [FLAGS]   both ends on this machine, over a veth pair
  xperf TEST --help              what one test measures, with an example
  xperf compare [TABLE] --testbed   several ways to move messages side by side
  xperf memory                   what one end keeps for 2 to 10000 peers
  xperf plot FILE... [--plot OUT.svg]   draw what --json has written
  xperf serve [FLAGS]            server for whatever clients ask for

Tests:
`

const helpTail = `
What to measure (the client decides; a flag that the server has too must agree):
  --fabric F        xdp (default)FABRICS;
                    tcp with --transport rc and with raw tests. Raw tests over
                    udp and tcp are plain kernel sockets that spin: the baselines.
  --transport T     rd (default), ud, rc, or hybrid. Reliable datagrams carry
                    every test; unreliable ones Sends of one datagram and Write-Records, and
                    then the server's count of what arrived is shown beside
                    what was sent. Connections are iWARP over TCP: the kernel's
                    with --fabric tcp, one in user space with xdp. Over ud
                    MPI has reliability of its own; tests of MPI also take
                    hybrid: rd, and TCP of the kernel for large data
  --crc, --markers  rc: both ends ask for a CRC32C in each FPDU, for markers
                    (default: neither, as Linux's siw has it)
  --size LIST       bytes per message: 8,64,4K,1MB, or 8:4M for powers of two.
                    K, KB and KiB are 1024, M, MB and MiB 1024 times that. In raw
                    tests over xdp: bytes of the Ethernet frame.
  -a, --all         all powers of two from 1 to 8M that can be sent
  -b, --bidirectional   send_bw, write_bw, read_bw: both ends send at once, as in
                    send_bibw, write_bibw and read_bibw; mpi_bw takes the long one
  --op O            atomic_lat: fetch_add (default), cmp_swap or swap;
                    mpi_overlap: of acc, put, get, vector (Accumulate on every other
                    word) and fence (64 Accumulates between two) a list (default: all);
                    mpi_ghosts: a list of experiments (default: all)
  --ghosts LIST     mpi_overlap: ghosts on each host, a column for each number (default
                    0,1); see xrun --ghosts
  --progress LIST   mpi_overlap: a column for each thread, thread or thread-core,
                    that makes progress meanwhile; see xrun --progress
  --compute LIST    mpi_overlap: for how many microseconds the target computes between
                    two calls (default 0,10,30,100,300,1000)
  --peers N         send_rate: the server has N endpoints, which the client sends
                    to in turns (over xdp: with --testbed, which makes N hosts);
                    over rc N connections of one endpoint. memory: the most
  -n LIST           mpi_allreduce and the like, compare peers: ranks of the
                    collectives, half of them on each of two hosts (default 2,4,8)
  --tests LIST      compare peers: tests of MPI (default: all)
  --matrix          compare peers: streams, latency and collectives, 8 bytes to
                    4 MiB, one host and two at MTU 1500, 9000 and 32000, -n ranks;
                    prints the cells in which MPICH or Open MPI is faster. Without
                    --testbed it prints what --out has
  --quick           a part of the matrix, in less than two minutes
  --out FILE        keep the matrix in FILE, lines of JSON. What is there is not
                    measured again: so a run goes on where one was broken off, and
                    runs with other --tests, -n, --mtu and --size add to it
  --iters N         messages or round trips per burst (default: by size)
  --warmup N        messages before those (default: a tenth)
  --window N        messages under way to each peer in bw and rate tests
                    (default 64)
  $XWARP_EAGER
                    -1: none
  $XWARP_EAGER_IDLE
                    -1: none
  $XWARP_EAGER_NEAR
                    -1: none
  $XWARP_RENDEZVOUS
  --mtu M           largest IP packet in bytes (default: the device's; 9000
                    with --testbed)
  --ipv6, -6        over IPv6: of HOST, of the server's listener, or of the hosts of
                    --testbed; an IPv6 address of HOST says so, too
  --switch S        what joins the hosts of --testbed: cable (default), bridge or
                    xdp. Only on a bridge does tcpdump see AF_XDP frames: ip
                    netns exec xwarp-PID-...-sw tcpdump -ni any -Q in udp
  --loss P          drop a share P of the frames that are sent, as in 0.01 or 1%
  --capture FILE    write what passes the client to FILE (pcapng), for Wireshark
                    with docs/wireshark/xwarp.lua; frames that --loss drops are
                    not in it. Figures taken with it are no measure. With --vs
                    it holds for the first configuration
  --vs "FLAGS"      measure a second configuration in turns with the first and
                    print the ratio A/B of the medians. FLAGS change the first
                    configuration; they may begin with another TEST.
  --rounds N        bursts per size; medians count (default 1, with --vs 9)
  --duration S      measure each size for S seconds, in as many rounds as it takes;
                    compare peers and collectives: how long a burst takes (0.04)
  --best            compare peers, collectives: of the bursts of a latency the best
                    one counts, not the median: for a machine that others use,
                    with many short bursts (compare algorithms always does so)

Where:
  --device DEV      network interface (default: the one that leads to the peer);
                    a server listens at its address only
  --cores A,B       server's and client's core (default: the two highest)
  $XWARP_BULK
  $XWARP_SECURE
                    xperf agrees on the secret over the control connection,
                    which --testbed encrypts, too; between two hosts it takes
                    --secure-key
  --secure-key FILE on both hosts: encrypt the control connection with the key in
                    FILE, and refuse who has not got it. Make it with
                    (umask 077; openssl rand -hex 32 > FILE)
  $XWARP_BUSY_POLL
                    Both ends change napi_defer_hard_irqs and gro_flush_timeout
                    of the card meanwhile. The first line says whether it can
  --port N          TCP port of the control connection (default 18515)
  --listen ADDR     server: address to wait at, or address:port (default: the
                    device's address, without --device all; and --port)
  --netns LIST      serve: further network namespaces with a device of the same
                    name, an endpoint in each (what --testbed --peers uses)
  --connect-timeout D   how long a client waits for a server (default 10s)

Output:
  --json            one JSON object per line: test, transport, fabric, mtu,
                    size, iters, lat_us{min,p50,p99,p999,max,avg,stdev}, gbit_s,
                    msg_s, carrier, lost, rounds; of some tests op, peers, crc,
                    markers, loss, library, ranks, hosts, ipv6;
                    where messages may be lost sent{gbit_s,msg_s,whole,valid};
                    on AF_XDP detail (device, queues, buffers per frame); where
                    carriers have lost frames losses{here,there}, each
                    {rx_no_socket, rx_no_room, rx_checksum, tx_unreachable,
                    tx_refused, rx_forged, rx_replayed}, which the tables name
                    but for rx_no_room
                    of mpi_overlap and mpi_ghosts op, compute_us or n, ghosts, progress,
                    and of each experiment {experiment, figure, published, here};
                    with --vs also {metric, a, b, ratio, low, high}
                    memory: transport, receives, carrier, peers, user_bytes,
                    kernel_bytes, buffer_bytes, total_bytes, per_peer_bytes
  --markdown        compare, memory: tables as Markdown
  --plot FILE.svg   draw the results over the sizes, both axes logarithmic
  --version         say which version this is, and do nothing
  --help            say this

Latency is half of a round trip; all of it for reads and atomics, as in
perftest; avg is the mean, stdev the standard deviation, p99.9 what one in a
thousand is above. Of several rounds min and max are of all, the rest is the
median of the rounds; of collectives the mean over the ranks. Bandwidth and rate
are of what the receiver has confirmed, in bibw tests the sum of both ways over
the longer of the times that the two ends took.

Exit status: 0 measured; 1 failed; 2 used wrongly; 3 this machine or user lacks
what the test needs; 130 interrupted.

Flags of perftest are understood: -s, -n, -D, -d, -p, -m, -t, -q, -c, -A and -b
for --size, --iters, --duration, --device, --port, --mtu, --window, --peers,
--transport, --op and --bidirectional. In tests of MPI flags are those of the
OSU micro-benchmarks where these have them: -m [MIN:]MAX, -i, -x and -W for
--size, --iters, --warmup and --window. Some change nothing, as perftest's -F, -R,
-z, -N, --report_gbits and --perform_warm_up, and OSU's -f and -u; of those that
there are not xperf says what to use instead. A number of ranks is what -n is in
collectives and in compare.

Examples:
  xperf send_lat --testbed
  xperf send_lat --testbed --transport rd --vs "--transport rc --fabric tcp"
  xperf send_bw -b -s 64KB -n 5000 --testbed
  xperf mpi_bibw -m 1:1M -W 32 --testbed
  xperf compare verbs --testbed --markdown --plot verbs.svg
  xperf compare --testbed --size 8,1M --rounds 9
  xperf compare peers --testbed --tests mpi_lat,mpi_bw --mtu 9000
  xperf compare peers --testbed --matrix --out m.json --plot m.svg
  xperf mpi_overlap --testbed --ghosts 0,1 --plot overlap.svg
  xperf memory --peers 1000 --markdown
  xperf write_bw 192.0.2.1 -a --json > write.json
  xperf plot write.json read.json --plot both.svg
`

// help writes the manual, or that of one command.
func help(w io.Writer, command string) error {
	if c, ok := bench.Find(command); ok {
		return helpTest(w, c)
	}
	text, err := manual()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// manual returns what --help prints.
func manual() (string, error) {
	tables, err := bench.Comparisons(true)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(helpHead)
	for _, c := range bench.Cases() {
		fmt.Fprintf(&b, "  %-17s %s\n", c.Name, c.Summary)
	}
	b.WriteString("\nTables of compare:\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "  %-17s %s\n", t.Name, t.Summary)
	}
	fmt.Fprintf(&b, "  %-17s %s\n", peersTable, peersSummary)
	fmt.Fprintf(&b, "  %-17s %s\n", abiTable, abiSummary)
	fmt.Fprintf(&b, "  %-17s %s\n", algorithmsTable, algorithmsSummary)
	others := slices.DeleteFunc(bench.Fabrics(), func(f string) bool { return f == "xdp" || f == "tcp" })
	b.WriteString(cli.Configured(strings.Replace(helpTail, "FABRICS", ", "+strings.Join(others, ", "), 1), 20))
	return b.String(), nil
}

// page is what xperf says about itself.
func page() (cli.Page, error) {
	text, err := manual()
	var vs, sizes, netns string
	return cli.Page{
		Name: "xperf", Summary: "measure latency, bandwidth and message rate between two ends",
		Help: text, Flags: (&options{}).flagSet(&vs, &sizes, &netns), SeeAlso: []string{"ib_send_lat(1)"},
	}, err
}

// helpTest writes the manual of one test.
func helpTest(w io.Writer, c bench.Case) error {
	_, err := fmt.Fprintf(w, `xperf %[1]s: %[2]s

  xperf %[1]s [FLAGS]             server: waits for one client
  xperf %[1]s HOST [FLAGS]        client: measures against the server on HOST
  xperf %[1]s --testbed [FLAGS]   both ends on this machine, over a veth pair

Example:
  xperf %[1]s %[3]s

`+"`xperf --help` lists the flags.\n", c.Name, c.Summary, c.Example)
	return err
}
