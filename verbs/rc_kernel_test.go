package verbs

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// heardOverTCP connects a socket to an end over kernel TCP, says bytes behind
// the start-up, and returns the ULPDUs that come back before the end of the
// stream. With reset it does not wait for any, and resets the connection.
func heardOverTCP(to netip.AddrPort, say []byte, reset bool) (all [][]byte, err error) {
	conn, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var initiator mpa.Initiator
	request, err := initiator.Start(mpa.Config{IRD: 4, ORD: 4, CRC: true}, nil)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var reply [24]byte // without private data
	if _, err := io.ReadFull(conn, reply[:]); err != nil {
		return nil, err
	}
	if _, _, err := initiator.Reply(reply[:]); err != nil {
		return nil, err
	}
	if _, err := conn.Write(say); err != nil {
		return nil, err
	}
	if reset {
		return nil, conn.SetLinger(0)
	}
	b, err := io.ReadAll(conn)
	rx := mpa.Rx{CRC: true}
	for len(b) > 0 {
		u, n, _, cause, good := rx.Next(b)
		if !good || n == 0 {
			return all, cause
		}
		all, b = append(all, u), b[n:]
	}
	return all, err
}

func framed(ulpdus ...[]byte) (b []byte) {
	tx := mpa.Tx{CRC: true}
	for _, u := range ulpdus {
		at := len(b)
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(u))), u...)
		var trailer [mpa.TrailerMax]byte
		b = append(b, trailer[:tx.Trailer(trailer[:], b[at:])]...)
	}
	return b
}

// served is an end over kernel TCP that a socket has connected to.
func served(t *testing.T, e *rcEnd, lis *CMID, say []byte, reset bool) (*CMID, chan struct{}, *[][]byte, *error) {
	t.Helper()
	over, all, err := make(chan struct{}), new([][]byte), new(error)
	go func() {
		*all, *err = heardOverTCP(lis.LocalAddr(), say, reset)
		close(over)
	}()
	ev := rcEvent(t, e, e, e, CMConnectRequest)
	must(t, ev.ID.CreateQP(e.pd, QPInit{SendCQ: e.scq, RecvCQ: e.rcq}))
	must(t, ev.ID.QP.PostRecv(&RecvWR{WRID: 1, NumSGE: 1, SGL: [MaxSGE]SGE{e.mr.SGE(0, 64)}}))
	must(t, ev.ID.Accept(ConnParam{}))
	rcEvent(t, e, e, e, CMEstablished)
	return ev.ID, over, all, err
}

// Over a socket the same is heard as over a script: the Terminate, and the end
// of the stream behind it.
func TestRC_refusesOverTCP(t *testing.T) {
	e := newRCEnd(t)
	lis, err := e.ch.CreateID()
	must(t, err)
	must(t, lis.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")))
	must(t, lis.Listen(8))
	send := ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Send), MSN: 1}
	second := send
	second.MSN = 2
	for what, row := range map[string]struct {
		before []byte
		bad    []byte
		cause  iwarp.Cause
		copied string
	}{
		"Write, unknown STag":  {nil, withBody(&ddp.Header{Tagged: true, Last: true, ULP: rdmap.Control(rdmap.Write), STag: 1}, filler(8)), ddp.InvalidSTag, "MD"},
		"Send without receive": {withBody(&send, filler(8)), withBody(&second, filler(8)), ddp.NoBuffer, "MD"},
		"Send, too long":       {nil, withBody(&send, filler(65)), ddp.MessageTooLong, "MD"},
		"RDMAP version 0":      {nil, not(withBody(&send, filler(8)), 1, 3), rdmap.InvalidVersion, ""},
	} {
		t.Run(what, func(t *testing.T) {
			say := framed(row.bad)
			if row.before != nil {
				say = framed(row.before, row.bad)
			}
			id, over, all, err := served(t, e, lis, say, false)
			if ev := rcEvent(t, e, e, e, CMDisconnected); !isTerminate(ev.Err, row.cause, false) {
				t.Errorf("%v", ev.Err)
			}
			<-over
			must(t, *err)
			if want := wantTerminate(row.cause, row.copied, row.bad); len(*all) != 1 || !bytes.Equal((*all)[0], want) {
				t.Errorf("heard %x, want %x", *all, want)
			}
			if wc := rcNext(t, e, e, e.rcq); wc.WRID != 1 {
				t.Errorf("%+v", wc)
			}
			must(t, id.Destroy())
			id.QP.Destroy()
		})
	}
}

// A socket is reset behind any byte of a message.
func TestRC_resetOverTCP(t *testing.T) {
	e := newRCEnd(t)
	lis, err := e.ch.CreateID()
	must(t, err)
	must(t, lis.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")))
	must(t, lis.Listen(8))
	say := framed(withBody(&ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Send), MSN: 1}, filler(20)))
	for n := range len(say) + 1 {
		id, over, _, err := served(t, e, lis, say[:n], true)
		if ev := rcEvent(t, e, e, e, CMDisconnected); ev.Err == nil {
			t.Errorf("byte %d: a reset is an orderly end", n)
		}
		<-over
		must(t, *err)
		if wc := rcNext(t, e, e, e.rcq); wc.WRID != 1 || n < len(say) && wc.Status != WRFlushErr {
			t.Errorf("byte %d: %+v", n, wc)
		}
		if q := id.QP; q.State() != StateErr || q.rc.stream != nil {
			t.Errorf("byte %d: state %v", n, q.State())
		}
		must(t, id.Destroy())
		id.QP.Destroy()
	}
}
