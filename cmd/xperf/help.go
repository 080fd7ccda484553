package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/xwarp/xwarp/bench"
)

const helpHead = `xperf measures latency, bandwidth and message rate between two ends.

  xperf TEST [FLAGS]             server: waits for one client
  xperf TEST HOST [FLAGS]        client: measures against the server on HOST
  xperf TEST --testbed [FLAGS]   both ends on this machine, over a veth pair
  xperf compare --testbed        MPI over AF_XDP beside MPI over UDP and plain TCP
  xperf serve [FLAGS]            server for whatever clients ask for

Tests:
`

const helpTail = `
What to measure (the client decides; a flag that the server has too must agree):
  --fabric F        xdp (default), xdp:generic, xdp:driver, xdp:asavie, udp;
                    tcp with raw tests. Raw tests over udp and tcp are plain
                    kernel sockets that spin: the baselines.
  --transport T     rd (default) for send and mpi tests
  --size LIST       bytes per message: 8,64,4K,1M, or 8:4M for powers of two.
                    In raw tests over xdp: bytes of the Ethernet frame.
  --iters N         messages or round trips per burst (default: by size)
  --warmup N        messages before those (default: a tenth)
  --window N        messages under way in bw and rate tests (default 64)
  --mtu M           largest IP packet in bytes (default: the device's; 9000
                    with --testbed)
  --switch S        what joins the hosts of --testbed: cable (default), bridge or
                    xdp. Only on a bridge does tcpdump see AF_XDP frames: ip
                    netns exec xwarp-PID-...-sw tcpdump -ni any udp
  --loss P          drop a share P of the frames that are sent, as in 0.01
  --capture FILE    write what passes the client to FILE (pcapng), for Wireshark
                    with docs/wireshark/xwarp.lua; frames that --loss drops are
                    not in it. Figures taken with it are no measure. With --vs
                    it holds for the first configuration
  --vs "FLAGS"      measure a second configuration in turns with the first and
                    print the ratio A/B of the medians. FLAGS change the first
                    configuration; they may begin with another TEST.
  --rounds N        bursts per size; medians count (default 1, with --vs 9)

Where:
  --device DEV      network interface (default: the one that leads to the peer)
  --cores A,B       server's and client's core (default: the two highest)
  --port N          TCP port of the control connection (default 18515)
  --listen ADDR     server: address:port to wait at, instead of --port
  --connect-timeout D   how long a client waits for a server (default 10s)

Output:
  --json            one JSON object per line: test, transport, fabric, mtu,
                    size, iters, lat_us{min,p50,p99,max}, gbit_s, msg_s, ...;
                    with --vs also {metric, a, b, ratio, low, high}
Latency is half of a round trip. Exit status: 0 measured, 1 failed, 2 used
wrongly, 3 this machine or user lacks what the test needs, 130 interrupted.

Examples:
  xperf send_lat --testbed
  xperf send_lat --size 8 --testbed --vs "raw_lat --size 64"
  xperf mpi_bw --size 4K:4M --testbed --vs "--fabric udp"
  xperf raw_rate --fabric xdp:driver --testbed --json
  xperf raw_lat --fabric tcp 192.0.2.1
`

// help writes the manual.
func help(w io.Writer) error {
	var tests strings.Builder
	for _, c := range bench.Cases() {
		fmt.Fprintf(&tests, "  %-16s  %s\n", c.Name, c.Summary)
	}
	_, err := io.WriteString(w, helpHead+tests.String()+helpTail)
	return err
}
