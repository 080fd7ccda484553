package mpa

import "errors"

// MaxPrivate is the most private data in bytes that siw can take, with the 4
// bytes of RFC 6581 among them; RFC 5044 has 512.
const (
	MaxPrivate     = 512
	MaxPrivateSent = 256
)

// FrameMax is the length of the longest start-up frame.
const FrameMax = 20 + MaxPrivate

var errStub = errors.New("mpa: stub")

// Initiator is the active end of a start-up.
type Initiator struct{}

// Start builds the Request: what to send first.
func (i *Initiator) Start(c Config, private []byte) (request []byte, err error) {
	return nil, errStub
}

// Reply looks at what has arrived since, all of it. n is the length of the
// Reply; what is behind it are FPDUs. 0 without an error: more has to come.
func (i *Initiator) Reply(b []byte) (n int, a Agreed, err error) { return 0, a, errStub }

// Responder is the passive end of a start-up.
type Responder struct {
	// Peer is what the initiator wants: its private data, its IRD and ORD,
	// for whoever decides. Valid once Request has returned n > 0.
	Peer Agreed
}

// Request looks at what has arrived, all of it; n as in Initiator.Reply.
// With an error, reply is what to send before the connection is closed, if
// anything.
func (r *Responder) Request(b []byte) (n int, reply []byte, err error) { return 0, nil, errStub }

// Accept builds the Reply that accepts.
func (r *Responder) Accept(c Config, private []byte) (reply []byte, a Agreed, err error) {
	return nil, a, errStub
}

// Reject builds the Reply that rejects.
func (r *Responder) Reject(private []byte) (reply []byte, err error) { return nil, errStub }
