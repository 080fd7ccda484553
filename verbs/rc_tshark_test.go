package verbs

import (
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// recorder keeps what both ends of a connection send.
type recorder struct {
	capture vectors.Capture
	port    uint16
	sent    [2][]byte
}

const recordedMSS = 1448

func (r *recorder) wrap(s fabric.Streams) fabric.Streams { return &recordedStreams{s, r} }

type recordedStreams struct {
	fabric.Streams
	r *recorder
}

func (s *recordedStreams) Dial(to, from netip.AddrPort) (fabric.Stream, error) {
	c, err := s.Streams.Dial(to, from)
	return &recordedStream{c, s.r, 0}, err
}

func (s *recordedStreams) Listen(at netip.AddrPort, backlog int) (fabric.Listener, error) {
	l, err := s.Streams.Listen(at, backlog)
	return &recordedListener{l, s.r}, err
}

type recordedListener struct {
	fabric.Listener
	r *recorder
}

func (l *recordedListener) Accept() fabric.Stream {
	if c := l.Listener.Accept(); c != nil {
		return &recordedStream{c, l.r, 1}
	}
	return nil
}

type recordedStream struct {
	fabric.Stream
	r    *recorder
	side int
}

func (c *recordedStream) MSS() int { return recordedMSS }

func (c *recordedStream) Send(bufs [][]byte) int {
	n := c.Stream.Send(bufs)
	left := n
	var all []byte
	for _, b := range bufs {
		b = b[:min(len(b), left)]
		left -= len(b)
		all = append(all, b...)
	}
	c.r.sent[c.side] = append(c.r.sent[c.side], all...)
	for len(all) > 0 {
		k := min(len(all), recordedMSS)
		c.r.capture.Segment(c.r.port, c.side, all[:k])
		all = all[k:]
	}
	return n
}

// opcodes counts the FPDUs in what a side has sent behind its start-up frame.
func (r *recorder) opcodes(t *testing.T, p ConnParam, count map[int]int) (fpdus int) {
	t.Helper()
	for _, b := range r.sent {
		b = b[20+int(b[18])<<8+int(b[19]):]
		rx := mpa.Rx{CRC: p.CRC, Markers: p.Markers}
		for len(b) > 0 {
			u, n, _, cause, ok := rx.Next(b)
			if !ok || n == 0 {
				t.Fatalf("what was sent is no FPDU: %v", cause)
			}
			count[int(u[1]&15)]++
			fpdus++
			b = b[n:]
		}
	}
	return fpdus
}

// traffic makes a connection carry every kind of message in both directions,
// with sizes around everything that has a limit, and ends it with a Terminate.
func traffic(t *testing.T, r *recorder, p ConnParam) {
	a, b := rcPair(t, p, r.wrap)
	ends := [2]*rcEnd{a, b}
	spare := [2]*MR{}
	for i, e := range ends {
		var err error
		spare[i], err = e.pd.RegMR(make([]byte, 64), LocalWrite|RemoteWrite|RemoteInvalidate)
		must(t, err)
	}
	for i, e := range ends {
		to := ends[1-i]
		do := func(wr SendWR, n int) {
			t.Helper()
			wr.Flags |= Signaled
			wr.NumSGE, wr.SGL[0] = 1, e.mr.SGE(8, n)
			wr.RKey, wr.RemoteAddr = to.mr.RKey(), to.mr.Addr()+64
			if wr.Opcode <= OpSendWithInv || wr.Opcode == OpRDMAWriteWithImm {
				must(t, to.qp.PostRecv(&RecvWR{NumSGE: 1, SGL: [MaxSGE]SGE{to.mr.SGE(0, 100_000)}}))
				defer rcNext(t, a, b, to.rcq)
			}
			must(t, e.qp.PostSend(&wr))
			if wc := rcNext(t, a, b, e.scq); wc.Status != Success {
				t.Fatalf("%v of %d bytes: %+v", wr.Opcode, n, wc)
			}
		}
		for _, n := range []int{0, 1, 3, 4, 1423, 1424, 1425, 1428, 1429, 20_000} {
			do(SendWR{Opcode: OpSend}, n)
			do(SendWR{Opcode: OpSend, Flags: Solicited}, n)
			do(SendWR{Opcode: OpRDMAWrite}, n)
			do(SendWR{Opcode: OpRDMARead}, n)
			do(SendWR{Opcode: OpRDMAWriteWithImm, ImmData: 7}, n)
		}
		do(SendWR{Opcode: OpRDMAWriteWithImm, ImmData: 8, Flags: Solicited}, 100)
		do(SendWR{Opcode: OpSendWithInv, InvKey: spare[1-i].RKey()}, 100)
		do(SendWR{Opcode: OpAtomicFetchAndAdd, Atomic: Atomic{Add: 1}}, 8)
		do(SendWR{Opcode: OpAtomicCmpAndSwp, Atomic: Atomic{Swap: 1}}, 8)
	}
	must(t, a.qp.PostSend(&SendWR{Opcode: OpRDMARead, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, 8)}, RKey: b.mr.RKey() ^ 0xff}))
	if wc := rcNext(t, a, b, a.scq); wc.Status != RemAccessErr {
		t.Fatalf("refused Read: %+v", wc)
	}
	rcEvent(t, a, b, b, CMDisconnected)
}

// Wireshark, which we did not write, reads everything that two queue pairs send
// each other: the same FPDUs as we do, none malformed, every CRC good.
func TestRC_tsharkReadsAll(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("XWARP_REQUIRE_TSHARK") == "1" {
			t.Fatal("XWARP_REQUIRE_TSHARK=1, but: ", err)
		}
		t.Skip("needs tshark: apt-get install tshark")
	}
	for name, p := range map[string]ConnParam{
		"plain": {}, "CRC": {CRC: true}, "peer to peer": {RTR: mpa.RTRWrite}, "peer to peer by Read, CRC": {RTR: mpa.RTRRead, CRC: true}, "revision 1": {Revision: 1, CRC: true},
	} {
		if Slow && !p.CRC {
			continue // tshark is what takes long
		}
		t.Run(name, func(t *testing.T) {
			r := &recorder{port: 40001}
			traffic(t, r, p)
			want := map[int]int{}
			fpdus := r.opcodes(t, p, want)
			file := filepath.Join(t.TempDir(), "rc.pcap")
			must(t, os.WriteFile(file, r.capture.Bytes(), 0o600))
			// What Sends carry is nobody else's protocol.
			args := []string{"-n", "-r", file, "--disable-heuristic", "rpcrdma_iwarp", "--disable-heuristic", "smb_direct_iwarp"}
			out, err := exec.Command(tshark, append(args, "-T", "fields", "-E", "aggregator=,", "-e", "iwarp_rdma.opcode")...).Output()
			must(t, err)
			got := map[int]int{}
			for _, word := range strings.FieldsFunc(string(out), func(r rune) bool { return r == ',' || r == '\n' }) {
				op, err := strconv.ParseInt(word, 0, 32)
				must(t, err)
				got[int(op)]++
			}
			if !maps.Equal(got, want) || fpdus < 300 {
				t.Errorf("FPDUs by opcode: tshark finds %v, want %v", got, want)
			}
			text, err := exec.Command(tshark, append(args, "-V")...).Output()
			must(t, err)
			for _, bad := range []string{"Malformed", "Bad CRC32", "Bad length"} {
				if n := strings.Count(string(text), bad); n > 0 {
					t.Errorf("%s: %d times", bad, n)
				}
			}
			if good := strings.Count(string(text), "(Good CRC32)"); p.CRC && good != fpdus {
				t.Errorf("%d CRCs are good, want %d", good, fpdus)
			}
		})
	}
}
