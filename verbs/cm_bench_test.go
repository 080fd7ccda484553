package verbs_test

import (
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// BenchmarkCM_connect is a whole life: queue pairs at both ends, connect,
// accept, disconnect, destroy; over the kernel's TCP, both ends in one thread.
func BenchmarkCM_connect(b *testing.B) {
	client, server := newCMEnd(b), newCMEnd(b)
	l := server.listen("127.0.0.1:0", 0)
	b.ReportAllocs()
	for b.Loop() {
		q, q2 := client.qp(), server.qp()
		id := client.connect(l.LocalAddr(), verbs.ConnParam{QP: q})
		peer := expect(b, server, verbs.CMConnectRequest, client, server).ID
		must(b, peer.Accept(verbs.ConnParam{QP: q2}))
		both(b, client, server, verbs.CMEstablished, verbs.CMEstablished)
		must(b, id.Disconnect())
		both(b, client, server, verbs.CMDisconnected, verbs.CMDisconnected)
		must(b, id.Destroy())
		must(b, peer.Destroy())
		q.Destroy()
		q2.Destroy()
	}
}
