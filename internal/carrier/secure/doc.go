// Package secure encrypts and authenticates the datagrams of a carrier with AES-GCM
// (NIST SP 800-38D), for endpoints that share a secret of 32 bytes. docs/protocol/secure.md
// says what is on the wire, how keys follow from the secret, and why.
//
// The user of a [Datagram] sees plaintext; what is below it (devices, captures, injected
// faults, other machines) sees what is encrypted. Nothing that was not authenticated is ever
// handed out.
package secure
