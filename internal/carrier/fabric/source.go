package fabric

// SourcePorts is how many source ports an endpoint may send from ([Packet].Source). Whatever
// it takes, its address is the one with its own port. Network cards choose the queue by the
// ports, so a sender can find one whose datagrams arrive on the receiver's home queue
// ([DatagramCaps].Home). A carrier that has no such ports sends all from its own.
const SourcePorts = 64
