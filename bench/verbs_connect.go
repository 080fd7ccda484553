package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// connector makes the connections of an endpoint over rc: the server listens at
// a port that is free and tells the client, which connects its queue pairs one
// after the other.
type connector struct {
	*endpoint
	channel *verbs.CMChannel
	ids     []*verbs.CMID // one per connection, and the server's listener
}

// listenerKey is what the server puts its address under.
const listenerKey = "listener"

// openConnector opens the connection manager; the server listens, and the
// client is told with the next fence.
func openConnector(p *endpoint) (*connector, error) {
	k := &connector{endpoint: p}
	var err error
	if k.channel, err = p.ctx.CreateCMChannel(); err != nil {
		return nil, err
	}
	if !p.Server {
		return k, nil
	}
	id, err := k.create()
	if err != nil {
		return k, err
	}
	if err := id.BindAddr(netip.AddrPortFrom(p.Addr, 0)); err != nil {
		return k, fmt.Errorf("bind to %v: %w", p.Addr, err)
	}
	if err := id.Listen(len(p.qps)); err != nil {
		return k, fmt.Errorf("listen at %v: %w", p.Addr, err)
	}
	return k, p.Pair.Put(listenerKey, id.LocalAddr().String())
}

func (k *connector) create() (*verbs.CMID, error) {
	id, err := k.channel.CreateID()
	if err == nil {
		k.ids = append(k.ids, id)
	}
	return id, err
}

// connect connects all queue pairs, once their receives are posted. The client
// says in its private data which one of the server's is meant.
func (k *connector) connect() error {
	if !k.Server {
		return errors.Join(k.dialAll(), k.Pair.Fence())
	}
	if err := k.accept(); err != nil {
		return err
	}
	var turns spin
	for !k.Pair.Spoken() { // the client may not have heard yet that it is connected
		if err := k.step(&turns); err != nil {
			return err
		}
	}
	return k.Pair.Fence()
}

// dialAll connects the client's queue pairs.
func (k *connector) dialAll() error {
	to, err := said(k.Pair, listenerKey, netip.ParseAddrPort)
	if err != nil {
		return err
	}
	for i, qp := range k.qps {
		if err := k.dial(to, verbs.ConnParam{QP: qp, PrivateData: []byte{byte(i)}}); err != nil {
			return fmt.Errorf("connection %d of %d to %v: %w", i+1, len(k.qps), to, err)
		}
	}
	return nil
}

func (k *connector) dial(to netip.AddrPort, param verbs.ConnParam) error {
	id, err := k.create()
	if err != nil {
		return err
	}
	if err := id.ResolveAddr(to, 0); err != nil {
		return err
	}
	if _, err := k.await(verbs.CMAddrResolved); err != nil {
		return err
	}
	if err := id.ResolveRoute(0); err != nil {
		return err
	}
	if _, err := k.await(verbs.CMRouteResolved); err != nil {
		return err
	}
	if err := id.Connect(k.wishes(param)); err != nil {
		return err
	}
	_, err = k.await(verbs.CMEstablished)
	return err
}

// wishes adds what the user has asked for.
func (k *connector) wishes(param verbs.ConnParam) verbs.ConnParam {
	param.CRC, param.Markers = k.Spec.CRC, k.Spec.Markers
	return param
}

// accept accepts a connection for each queue pair.
func (k *connector) accept() error {
	free := slices.Clone(k.qps)
	for established := 0; established < len(free); {
		ev, err := k.await(verbs.CMConnectRequest, verbs.CMEstablished)
		if err != nil {
			return err
		}
		if ev.Type == verbs.CMEstablished {
			established++
			continue
		}
		k.ids = append(k.ids, ev.ID)
		private := ev.Param.PrivateData
		if len(private) == 0 || int(private[0]) >= len(free) || free[private[0]] == nil {
			return fmt.Errorf("a connection from %v asks for queue pair %v of %d", ev.ID.PeerAddr(), private, len(free))
		}
		qp := free[private[0]]
		free[private[0]] = nil
		if err := ev.ID.Accept(k.wishes(verbs.ConnParam{QP: qp})); err != nil {
			return fmt.Errorf("accept: %w", err)
		}
	}
	return nil
}

// await waits for one of the wanted events.
func (k *connector) await(wanted ...verbs.CMEventType) (verbs.CMEvent, error) {
	var turns spin
	for {
		ev, ok := k.channel.GetEvent()
		if !ok {
			if err := k.step(&turns); err != nil {
				return ev, err
			}
			continue
		}
		if slices.Contains(wanted, ev.Type) {
			return ev, nil
		}
		if ev.Err != nil {
			return ev, ev.Err
		}
		return ev, fmt.Errorf("event %v of the connection manager when %v was due", ev.Type, wanted)
	}
}

// close ends the connections.
func (k *connector) close() error {
	if k == nil || k.channel == nil {
		return nil
	}
	var errs []error
	for _, id := range k.ids {
		errs = append(errs, id.Destroy())
	}
	return errors.Join(append(errs, k.channel.Close())...)
}
