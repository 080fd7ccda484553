// Package footprint measures what one end keeps for its peers. It connects a server to
// a number of them, exchanges a message with each, lets everything go idle, and
// looks what memory goes away with the server. Over reliable datagrams every peer
// is a context of its own; over connections all are queue pairs of one context.
package footprint
