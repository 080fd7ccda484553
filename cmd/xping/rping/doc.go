// Package rping is the protocol of librdmacm's rping: a client and a server
// that try every basic operation of an RC queue pair in turn.
//
// For each ping the client fills a buffer with text and Sends its address, key
// and length ([Info]); the server Reads the text and Sends a go-ahead; the
// client Sends where the text may be written back to; the server Writes it
// there and Sends another go-ahead. Then the client compares.
//
//	client                                     server
//	  | -- Send: source ----------------------> |
//	  | <----------------- RDMA Read of source -|
//	  | -- Read Response: text ---------------> |
//	  | <------------------- Send: go ahead --- |
//	  | -- Send: sink ------------------------> |
//	  | <----------------- RDMA Write of sink - |
//	  | <------------------- Send: go ahead --- |
//
// Either end may be rping itself; the source is librdmacm/examples/rping.c of
// rdma-core.
package rping

import (
	"cmp"
	"errors"

	"github.com/xwarp/xwarp/verbs"
)

// Port is the TCP port that a server listens at by default.
const Port = 7174

// Sizes of a ping in bytes: rping's own limits.
const (
	DefaultSize = 64
	MinSize     = 23 // holds the longest number of a ping, and its zero
	MaxSize     = 65535
)

// Errors of a run. They are wrapped with what happened.
var (
	// ErrInterrupted says that Stop has ended a run before it was done.
	ErrInterrupted = errors.New("rping: interrupted")
	// ErrConnect says that no connection came about.
	ErrConnect = errors.New("rping: no connection")
	// ErrLost says that a connection has ended too early.
	ErrLost = errors.New("rping: connection lost")
	// ErrMismatch says that other bytes came back than were sent.
	ErrMismatch = errors.New("rping: data mismatch")
	// ErrProtocol says that the peer does not speak this protocol.
	ErrProtocol = errors.New("rping: the peer is no rping")
)

// Config says how to ping. Zero values mean the defaults.
type Config struct {
	// Size is how many bytes a ping of a client has, MinSize to MaxSize;
	// default DefaultSize. A server takes all sizes.
	Size int
	// Count is how many pings a client makes; default 0: until Stop.
	Count int
	// Validate makes a client compare what comes back.
	Validate bool
	// Persistent makes a server serve any number of clients, also at once;
	// default, one.
	Persistent bool
	// Param says how to connect. Unless it says otherwise, a client wants 1
	// outstanding Read each way, and a server agrees to what its client wants,
	// as rping does.
	Param verbs.ConnParam
	// Register registers memory; default, PD.RegMR. A client does so four
	// times: for what it receives, for what it sends, for the text that comes
	// back, and for the text. A server has one text only.
	Register func(*verbs.PD, []byte, verbs.Access) (*verbs.MR, error)
	// Ping is told of each ping that is done; default nil.
	Ping func(Ping)
	// Ended is told of each connection that a server has served, and why it
	// ended, if not in order; default nil.
	Ended func(Result, error)
	// Logf is told of every step; default nil.
	Logf func(format string, args ...any)
}

// wanted fills in how many Reads may be outstanding.
func wanted(p, unlessSaid verbs.ConnParam) verbs.ConnParam {
	p.ResponderResources = cmp.Or(p.ResponderResources, unlessSaid.ResponderResources)
	p.InitiatorDepth = cmp.Or(p.InitiatorDepth, unlessSaid.InitiatorDepth)
	return p
}

func (c Config) withDefaults() Config {
	c.Size = cmp.Or(c.Size, DefaultSize)
	if c.Register == nil {
		c.Register = (*verbs.PD).RegMR
	}
	if c.Ping == nil {
		c.Ping = func(Ping) {}
	}
	if c.Ended == nil {
		c.Ended = func(Result, error) {}
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	return c
}
