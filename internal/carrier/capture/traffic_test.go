package capture_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/capture"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

const regionSize = 1 << 16

// end is one of two contexts with what every operation needs.
type end struct {
	ctx      *verbs.Context
	pd       *verbs.PD
	scq, rcq *verbs.CQ
	rd, ud   *verbs.QP
	ah       *verbs.AH // of the other end
	mr       *verbs.MR
	spare    *verbs.MR // for the peer to invalidate
	spareKey uint32
}

func newEnd(t *testing.T, ctx *verbs.Context) *end {
	t.Helper()
	e := &end{ctx: ctx}
	pd, err := ctx.AllocPD()
	must(t, err)
	e.pd = pd
	e.scq, err = ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	e.rcq, err = ctx.CreateCQ(verbs.CQInit{})
	must(t, err)
	e.rd, err = pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq})
	must(t, err)
	e.ud, err = pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: e.scq, RecvCQ: e.rcq})
	must(t, err)
	const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	e.mr, err = pd.RegMR(make([]byte, regionSize), all)
	must(t, err)
	e.spare, err = pd.RegMR(make([]byte, 64), all|verbs.RemoteInvalidate)
	must(t, err)
	e.spareKey = e.spare.RKey()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range e.mr.Bytes() {
		e.mr.Bytes()[i] = byte(rng.Uint32())
	}
	return e
}

func (e *end) connect(t *testing.T, to *end) {
	t.Helper()
	var err error
	e.ah, err = e.pd.CreateAH(to.ctx.Addr())
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// operation is one work request, and what must be on the wire for it.
type operation struct {
	name  string
	wr    verbs.SendWR // without memory and addresses; SGL[0].Length is how much to move
	ud    bool
	recv  bool // completes a receive at the target
	there []rdmap.Opcode
	back  []rdmap.Opcode
}

// request is a work request that moves n bytes.
func request(op verbs.Opcode, n int, flags verbs.SendFlags) verbs.SendWR {
	wr := verbs.SendWR{Opcode: op, Flags: flags | verbs.Signaled, NumSGE: 1}
	wr.SGL[0].Length = uint32(n)
	return wr
}

func atomic(op verbs.Opcode) verbs.SendWR {
	wr := request(op, 8, 0)
	wr.Atomic = verbs.Atomic{Add: 3, Swap: 0x5757575757575757, Compare: 2}
	return wr
}

// operations are all that there are. A new one gets a line here.
var operations = []operation{
	{"Send", request(verbs.OpSend, 20000, 0), false, true, []rdmap.Opcode{rdmap.Send}, nil},
	{"Send of nothing", request(verbs.OpSend, 0, 0), false, true, []rdmap.Opcode{rdmap.Send}, nil},
	{"inline Send, solicited", request(verbs.OpSend, 8, verbs.Inline|verbs.Solicited), false, true, []rdmap.Opcode{rdmap.SendSE}, nil},
	{"Send with Invalidate", request(verbs.OpSendWithInv, 100, 0), false, true, []rdmap.Opcode{rdmap.SendInv}, nil},
	{"Write", request(verbs.OpRDMAWrite, 30000, 0), false, false, []rdmap.Opcode{rdmap.Write}, nil},
	{"Write with Immediate", request(verbs.OpRDMAWriteWithImm, 10, 0), false, true, []rdmap.Opcode{rdmap.Write, rdmap.Immediate}, nil},
	{"Read", request(verbs.OpRDMARead, 20000, 0), false, false, []rdmap.Opcode{rdmap.ReadRequest}, []rdmap.Opcode{rdmap.ReadResponse}},
	{"CmpSwap", atomic(verbs.OpAtomicCmpAndSwp), false, false, []rdmap.Opcode{rdmap.AtomicRequest}, []rdmap.Opcode{rdmap.AtomicResponse}},
	{"FetchAdd", atomic(verbs.OpAtomicFetchAndAdd), false, false, []rdmap.Opcode{rdmap.AtomicRequest}, []rdmap.Opcode{rdmap.AtomicResponse}},
	{"Swap", atomic(verbs.OpAtomicSwap), false, false, []rdmap.Opcode{rdmap.AtomicRequest}, []rdmap.Opcode{rdmap.AtomicResponse}},
	{"Write-Record", request(verbs.OpRDMAWriteRecord, 20000, 0), false, true, []rdmap.Opcode{rdmap.WriteRecord}, nil},
	{"UD Send", request(verbs.OpSend, 1000, 0), true, true, []rdmap.Opcode{rdmap.Send}, nil},
	{"UD Write-Record", request(verbs.OpRDMAWriteRecord, 1000, 0), true, true, []rdmap.Opcode{rdmap.WriteRecord}, nil},
}

// post posts an operation, from the first half of the region of e to the second
// half of the peer's. It returns what the message holds.
func (e *end) post(t *testing.T, op *operation, to *end) (message []byte) {
	t.Helper()
	wr, n := op.wr, int(op.wr.SGL[0].Length)
	message = e.mr.Bytes()[:n]
	wr.SGL[0] = e.mr.SGE(0, n)
	wr.AH, wr.RKey, wr.RemoteAddr = e.ah, to.mr.RKey(), to.mr.Addr()+regionSize/2
	wr.InvKey, wr.ImmData, wr.RemoteQPN = to.spareKey, 0x1122334455667788, to.ud.Num()
	if wr.Flags&verbs.Inline != 0 {
		wr.NumSGE, wr.InlineData = 0, message
	}
	qp := e.rd
	if op.ud {
		qp = e.ud
	}
	must(t, qp.PostSend(&wr))
	return message
}

// exercise does operations from a to b, one after the other.
func exercise(t *testing.T, operations []operation, a, b *end, step func()) (there, back []byte) {
	t.Helper()
	for i := range operations {
		op := &operations[i]
		for _, qp := range []*verbs.QP{b.rd, b.ud} {
			rwr := verbs.RecvWR{NumSGE: 1}
			rwr.SGL[0] = b.mr.SGE(regionSize/2, regionSize/2)
			must(t, qp.PostRecv(&rwr))
		}
		message := bytes.Clone(a.post(t, op, b))
		if op.wr.Opcode == verbs.OpRDMARead {
			back = append(back, b.mr.Bytes()[regionSize/2:][:len(message)]...)
		} else if op.back == nil {
			there = append(there, message...)
		}
		await(t, op.name, a.scq, step)
		if op.recv {
			if wc := await(t, op.name, b.rcq, step); wc.Record != nil {
				wc.Record.Release()
			}
		}
	}
	return there, back
}

func await(t *testing.T, what string, q *verbs.CQ, step func()) (wc verbs.WC) {
	t.Helper()
	var one [1]verbs.WC
	for q.Poll(one[:]) == 0 {
		step()
	}
	if one[0].Status != verbs.Success {
		t.Fatalf("%s: %v", what, one[0].Status)
	}
	return one[0]
}

// ulpdu is one of the ULPDUs that tshark found.
type ulpdu struct {
	op      rdmap.Opcode
	out     bool
	last    bool
	payload []byte
}

var trafficFields = []string{
	"frame.packet_flags_direction", "xwarp.type", "xwarp.rdmap.opcode", "xwarp.ddp.last", "xwarp.payload.length", "xwarp.payload",
	"xwarp.resent", "xwarp.request", "xwarp.ddp.stag", "xwarp.ddp.to", "xwarp.imm", "xwarp.atomic.op", "xwarp.rdmap.inv_stag", "xwarp.record.length",
}

func outbound(r row) bool { return r.one("frame.packet_flags_direction") == "0x00000002" }

// ulpdus takes one packet apart.
func ulpdus(t *testing.T, r row) (list []ulpdu) {
	t.Helper()
	lengths, payloads := r["xwarp.payload.length"], r["xwarp.payload"]
	for i, text := range r["xwarp.rdmap.opcode"] {
		n, err := strconv.Atoi(text)
		must(t, err)
		u := ulpdu{op: rdmap.Opcode(n), out: outbound(r), last: r["xwarp.ddp.last"][i] == "1"}
		if !u.op.Single() {
			if lengths[0] != "0" {
				u.payload, err = hex.DecodeString(payloads[0])
				must(t, err)
				payloads = payloads[1:]
			}
			if fmt.Sprint(len(u.payload)) != lengths[0] {
				t.Errorf("payload of %d bytes said to have %s", len(u.payload), lengths[0])
			}
			lengths = lengths[1:]
		}
		list = append(list, u)
	}
	return list
}

// session is what both ends of an exercise left behind.
type session struct {
	ops         []operation
	a, b        *end
	files       [2]string
	stats       [2]llp.Stats
	there, back []byte
}

// close ends both contexts, the second one after it has heard that the first
// is gone.
func (s *session) close(t *testing.T, step func()) {
	t.Helper()
	for i, e := range []*end{s.a, s.b} {
		step()
		must(t, e.ctx.Close())
		s.stats[i], _ = e.ctx.Stats()
	}
}

// check holds the captures against what was done.
func (s *session) check(t *testing.T, lossy bool) {
	t.Helper()
	for i, file := range s.files {
		rows := dissect(t, file, trafficFields...)
		for n, r := range rows {
			checkGood(t, n+1, r)
		}
		checkCounts(t, rows, s.stats[i])
		if i == 0 && !lossy {
			s.checkMessages(t, rows)
		}
	}
}

// checkCounts compares the numbers of packets with those of the endpoint.
func checkCounts(t *testing.T, rows []row, want llp.Stats) {
	t.Helper()
	var got llp.Stats
	for _, r := range rows {
		if !outbound(r) {
			got.RxDatagrams++
			continue
		}
		got.TxDatagrams++
		got.TxResent += uint64(len(r["xwarp.resent"]))
		switch r.one("xwarp.type") {
		case "2":
			got.TxAcks++
		case "3", "4":
			got.TxHellos++
		case "6":
			got.TxResets++
		}
	}
	want = llp.Stats{
		RxDatagrams: want.RxDatagrams, TxDatagrams: want.TxDatagrams, TxAcks: want.TxAcks,
		TxHellos: want.TxHellos, TxResets: want.TxResets, TxResent: want.TxResent,
	}
	if got != want {
		t.Errorf("captured %+v\ncounted  %+v", got, want)
	}
}

// checkMessages looks for each operation in the capture of the end that asked,
// on a network that loses nothing.
func (s *session) checkMessages(t *testing.T, rows []row) {
	t.Helper()
	want := [2]map[rdmap.Opcode]int{{}, {}}
	for _, op := range s.ops {
		for _, code := range op.there {
			want[0][code]++
		}
		for _, code := range op.back {
			want[1][code]++
		}
	}
	got := [2]map[rdmap.Opcode]int{{}, {}}
	var payload [2][]byte
	requests := 0
	for _, r := range rows {
		requests += len(r["xwarp.request"])
		if r["xwarp.resent"] != nil {
			continue // a busy machine may be slower than a timer
		}
		for _, u := range ulpdus(t, r) {
			way := 1
			if u.out {
				way = 0
			}
			if u.last {
				got[way][u.op]++
			}
			payload[way] = append(payload[way], u.payload...)
		}
	}
	if !maps.Equal(got[0], want[0]) || !maps.Equal(got[1], want[1]) {
		t.Errorf("messages on the wire: %v, want %v", got, want)
	}
	if !bytes.Equal(payload[0], s.there) || !bytes.Equal(payload[1], s.back) {
		t.Errorf("%d and %d bytes of payload, want %d and %d, or others", len(payload[0]), len(payload[1]), len(s.there), len(s.back))
	}
	if requests < 5 { // a Hello, a Read and three atomics are answered
		t.Errorf("only %d answers have their request", requests)
	}
	s.checkFields(t, rows)
}

// checkFields wants the values that were posted.
func (s *session) checkFields(t *testing.T, rows []row) {
	t.Helper()
	seen := map[string][]string{}
	for _, r := range rows {
		if !outbound(r) || r["xwarp.resent"] != nil {
			continue
		}
		for _, f := range trafficFields {
			seen[f] = append(seen[f], r[f]...)
		}
	}
	for field, want := range map[string]string{
		"xwarp.ddp.stag":       fmt.Sprintf("0x%08x", s.b.mr.RKey()),
		"xwarp.ddp.to":         fmt.Sprintf("0x%016x", s.b.mr.Addr()+regionSize/2),
		"xwarp.imm":            "0x1122334455667788",
		"xwarp.rdmap.inv_stag": fmt.Sprintf("0x%08x", s.b.spareKey),
		"xwarp.record.length":  "20000",
	} {
		if !slices.Contains(seen[field], want) {
			t.Errorf("no %s is %s: %v", field, want, seen[field])
		}
	}
	if got := seen["xwarp.atomic.op"]; !slices.Equal(got, []string{"2", "0", "1"}) {
		t.Errorf("atomic operations are %v", got)
	}
}

func TestDissector_socketTraffic(t *testing.T) {
	needTshark(t)
	s := &session{ops: operations}
	var ends [2]*end
	for i := range ends {
		s.files[i] = filepath.Join(t.TempDir(), "end.pcapng")
		ctx, err := device.Open(device.Spec{Key: 7, Capture: s.files[i]})
		must(t, err)
		ends[i] = newEnd(t, ctx)
	}
	s.a, s.b = ends[0], ends[1]
	s.a.connect(t, s.b)
	step := func() {
		s.a.ctx.Engine().Step()
		s.b.ctx.Engine().Step()
	}
	s.there, s.back = exercise(t, s.ops, s.a, s.b, step)
	s.close(t, step)
	s.check(t, false)
}

// simulate does the exercise in the simulator.
func simulate(t *testing.T, c sim.Config, ops []operation) *session {
	t.Helper()
	s := &session{ops: ops}
	w := sim.New(c)
	nodes := w.Nodes(2)
	hops := inet.Fixed{}
	for _, n := range nodes {
		hops[n.Addr()] = inet.Hop{MAC: n.MAC(), Source: n.Addr(), MTU: 9000}
	}
	w.Go(nodes[0], "both ends", func(task *sim.Task) error {
		var ends [2]*end
		for i, n := range nodes {
			s.files[i] = filepath.Join(t.TempDir(), "node.pcapng")
			file, err := os.Create(s.files[i])
			must(t, err)
			port, err := n.Open(nil)
			must(t, err)
			ep, err := inet.New(inet.Config{
				Port: capture.NewPort(port, file, capture.Config{Clock: task}), Resolver: hops,
				Local: netip.AddrPortFrom(n.Addr(), 18700), MAC: n.MAC(),
			})
			must(t, err)
			ctx, err := verbs.New(verbs.Config{
				Datagram: ep, Engine: progress.New(task, task), Key: 7, Epoch: uint32(i + 1), ZeroBased: true, Dgram: dgram.Config{},
			})
			must(t, err)
			ends[i] = newEnd(t, ctx)
		}
		s.a, s.b = ends[0], ends[1]
		s.a.connect(t, s.b)
		step := func() {
			if s.a.ctx.Engine().Step()+s.b.ctx.Engine().Step() == 0 {
				task.Sleep(1000)
			}
		}
		s.there, s.back = exercise(t, s.ops, s.a, s.b, step)
		s.close(t, step)
		return nil
	})
	must(t, w.Run())
	return s
}

func TestDissector_simulatedTraffic(t *testing.T) {
	needTshark(t)
	s := simulate(t, sim.Config{Seed: 1}, operations)
	s.check(t, false)
	one, err := os.ReadFile(s.files[0])
	must(t, err)
	two, err := os.ReadFile(simulate(t, sim.Config{Seed: 1}, operations).files[0])
	must(t, err)
	if !bytes.Equal(one, two) {
		t.Error("one seed gave two captures")
	}
}

func TestDissector_simulatedLoss(t *testing.T) {
	needTshark(t)
	var ops []operation
	for range 5 {
		for _, op := range operations {
			// A lost datagram of UD would be waited for in vain, and a key is
			// invalidated once.
			if !op.ud && op.wr.Opcode != verbs.OpSendWithInv {
				ops = append(ops, op)
			}
		}
	}
	s := simulate(t, sim.Config{Seed: 2, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.1}}}, ops)
	if s.stats[0].TxResent == 0 {
		t.Error("nothing was sent again")
	}
	s.check(t, true)
}
