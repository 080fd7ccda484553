package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/cmd/xping/rping"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
)

// Connections of rping between two hosts with Linux' siw. One end of each is
// played to our rping as the other end, which then must send every byte that
// siw has sent: the start-up frame, the FPDUs and how they are cut, the order of
// messages, and nothing else.
func TestRping_siw(t *testing.T) {
	all := vectors.Load(t, "rping.json")
	for i := 0; i < len(all); i += 2 {
		replay(t, all[i].Note, vectors.Connection{Initiator: all[i].Bytes, Responder: all[i+1].Bytes})
	}
}

// The same with whole captures, when there are any: pings of many FPDUs, and a
// client that is not siw.
func TestRping_captures(t *testing.T) {
	dir := os.Getenv("XWARP_SIW_CAPTURES")
	if dir == "" {
		t.Skip("set XWARP_SIW_CAPTURES to a folder of pcap files of siw's traffic")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*rping*.pcap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pcap files of rping in %s (%v)", dir, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range vectors.TCPConnections(t, b) {
			replay(t, filepath.Base(file), c)
		}
	}
}

// replay plays both ends of a connection.
func replay(t *testing.T, name string, c vectors.Connection) {
	p := playOf(t, c)
	t.Run(name+", our server", func(t *testing.T) {
		p.against(t, p.responder, p.initiator, p.server)
	})
	if name == "mini-rping-crc.pcap" {
		return // the client is a script that waits, and no rping
	}
	t.Run(name+", our client", func(t *testing.T) {
		p.against(t, p.initiator, p.responder, p.client)
	})
}

// play is a connection of rping in turns: first the initiator's start-up frame,
// then the responder's, and so on.
type play struct {
	initiator, responder [][]byte
	source, sink         rping.Info // the client's memory
	text                 rping.Info // the server's
	count                int        // pings
	param                verbs.ConnParam
}

func playOf(t *testing.T, c vectors.Connection) *play {
	t.Helper()
	p := &play{initiator: turns(t, c.Initiator), responder: turns(t, c.Responder)}
	if len(p.initiator) != len(p.responder) {
		t.Fatalf("the initiator has %d turns, the responder %d", len(p.initiator), len(p.responder))
	}
	p.count = (len(p.initiator) - 1) / 3 // each takes a Send, a Read Response and a Send
	info := func(turn int) (at rping.Info) {
		b := ulpdus(p.initiator[turn])
		if !at.Parse(b[len(b)-1][ddp.UntaggedLen:]) {
			t.Fatal("a Send of the client is no Info")
		}
		return at
	}
	p.source, p.sink = info(1), info(3)
	var read rdmap.ReadReq
	if !read.Parse(ulpdus(p.responder[1])[0][ddp.UntaggedLen:]) {
		t.Fatal("the server does not begin with a Read")
	}
	p.text = rping.Info{Addr: read.SinkTO, RKey: uint32(read.SinkSTag)}
	var f mpa.Frame
	if n, err := f.Parse(c.Initiator, false); n == 0 || err != nil {
		t.Fatalf("start-up frame: %v", err)
	}
	p.param = verbs.ConnParam{Revision: f.Revision, CRC: f.CRC, RTR: f.RTR}
	return p
}

// turns cuts what one end has sent where the other one's turn is: behind the
// start-up frame, Sends, Read Requests, and Read Responses as a whole. A Send
// of the responder behind a Write is part of the Write's turn anyway.
func turns(t *testing.T, b []byte) (all [][]byte) {
	t.Helper()
	n := 20 + int(binary.BigEndian.Uint16(b[18:]))
	all, b = append(all, b[:n]), b[n:]
	for begin := 0; len(b) > begin; {
		n := 0
		for end := false; !end; {
			if len(b) < n+mpa.LengthLen {
				t.Fatal("the connection ends in the middle of a turn")
			}
			u := ulpdus(b[n:])[0]
			n += fpduLen(len(u))
			var h ddp.Header
			if !h.Parse(u) {
				t.Fatalf("% x is no DDP segment", u)
			}
			op, _, _ := rdmap.Check(&h, len(u)-h.Len())
			end = h.Last && op != rdmap.Write
		}
		all, b = append(all, b[:n]), b[n:]
	}
	return all
}

func fpduLen(ulpdu int) int { return mpa.LengthLen + ulpdu + mpa.Pad(ulpdu) + mpa.CRCLen }

// ulpdus returns the ULPDUs of whole FPDUs.
func ulpdus(b []byte) (all [][]byte) {
	for len(b) > 0 {
		n := int(binary.BigEndian.Uint16(b))
		all = append(all, b[mpa.LengthLen:mpa.LengthLen+n])
		b = b[min(fpduLen(n), len(b)):]
	}
	return all
}

// register returns a rping.Config.Register that gives the n-th region the name
// that names has for it.
func register(names map[int]rping.Info) func(*verbs.PD, []byte, verbs.Access) (*verbs.MR, error) {
	n := 0
	return func(pd *verbs.PD, b []byte, a verbs.Access) (*verbs.MR, error) {
		mr, err := pd.RegMR(b, a)
		if at, ok := names[n]; ok && err == nil {
			mr.Name(at.RKey, at.Addr)
		}
		n++
		return mr, err
	}
}

// server is our end of the responder's part.
func (p *play) server(ctx *verbs.Context, at netip.AddrPort) error {
	served := 0
	s, err := rping.NewServer(ctx, at, rping.Config{
		Register: register(map[int]rping.Info{2: p.text}),
		Ended:    func(r rping.Result, _ error) { served = r.Pings },
	})
	if err != nil {
		return err
	}
	if err = s.Run(); err == nil && served != p.count {
		err = fmt.Errorf("%d pings, not %d", served, p.count)
	}
	return err
}

// client is our end of the initiator's part.
func (p *play) client(ctx *verbs.Context, at netip.AddrPort) error {
	c, err := rping.NewClient(ctx, at, netip.AddrPort{}, rping.Config{
		Size: int(p.source.Size), Count: p.count, Validate: true, Param: p.param,
		Register: register(map[int]rping.Info{2: p.sink, 3: p.source}),
	})
	if err != nil {
		return err
	}
	_, err = c.Run()
	return err
}

// against lets one of our ends play against a script.
func (p *play) against(t *testing.T, want, say [][]byte, ours func(*verbs.Context, netip.AddrPort) error) {
	w := sim.New(sim.Config{Seed: 1})
	nodes := w.Nodes(2)
	serves := &want[0] == &p.responder[0]
	at := netip.AddrPortFrom(nodes[1].Addr(), rping.Port)
	if serves {
		at = netip.AddrPortFrom(nodes[0].Addr(), rping.Port)
	}
	w.Go(nodes[0], "ours", func(task *sim.Task) error {
		ctx, err := verbs.New(verbs.Config{
			Streams: nodes[0].Streams(sim.StreamConfig{}), Engine: progress.New(task, task), Epoch: 1, ZeroBased: true,
		})
		if err != nil {
			return err
		}
		return errors.Join(ours(ctx, at), ctx.Close())
	})
	w.Go(nodes[1], "script", func(task *sim.Task) error {
		s := script{task: task, streams: nodes[1].Streams(sim.StreamConfig{})}
		if serves {
			return s.connect(at, want, say)
		}
		return s.accept(at, want, say)
	})
	if err := w.Run(); err != nil {
		t.Error(err)
	}
}

// script is an end that sends what was written down, and checks what comes.
type script struct {
	task    *sim.Task
	streams fabric.Streams
	stream  fabric.Stream
}

// connect plays the initiator.
func (s *script) connect(to netip.AddrPort, want, say [][]byte) (err error) {
	if s.stream, err = s.streams.Dial(to, netip.AddrPort{}); err != nil {
		return err
	}
	for s.stream.State() == fabric.StreamConnecting {
		s.wait()
	}
	for i := range say {
		if err := errors.Join(s.say(say[i]), s.hear(i, want[i])); err != nil {
			return err
		}
	}
	s.stream.CloseWrite()
	return s.end()
}

// accept plays the responder.
func (s *script) accept(at netip.AddrPort, want, say [][]byte) error {
	l, err := s.streams.Listen(at, 1)
	if err != nil {
		return err
	}
	for s.stream = l.Accept(); s.stream == nil; s.stream = l.Accept() {
		s.wait()
	}
	for i := range say {
		if err := errors.Join(s.hear(i, want[i]), s.say(say[i])); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	s.stream.CloseWrite()
	s.streams.Flush()
	return nil
}

func (s *script) wait() {
	s.streams.Flush()
	s.task.Park(mono.Never, 0)
	s.streams.Poll(s.task.Now(), nil)
}

func (s *script) say(b []byte) error {
	if n := s.stream.Send([][]byte{b}); n != len(b) {
		return fmt.Errorf("only %d bytes were taken", n)
	}
	return nil
}

// hear compares what comes in a turn.
func (s *script) hear(turn int, want []byte) error {
	got := make([]byte, len(want))
	for have := 0; have < len(want); {
		n, eof := s.stream.Recv(got[have:])
		have += n
		if eof && have < len(want) {
			return fmt.Errorf("turn %d: the stream ends after % x, want % x", turn, got[:have], want)
		}
		if n == 0 {
			s.wait()
		}
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("turn %d:\n got % x\nwant % x", turn, got, want)
	}
	return nil
}

// end wants nothing more.
func (s *script) end() error {
	for b := make([]byte, 1000); ; {
		switch n, eof := s.stream.Recv(b); {
		case n > 0:
			return fmt.Errorf("it still sends % x", b[:n])
		case eof:
			return nil
		}
		s.wait()
	}
}
