package dgram

import (
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
)

// Config tunes reliable datagrams. Zero values mean the defaults.
type Config = arq.Config

// WindowMax is the largest window in ULPDUs: what MaxSackWords words can
// describe.
const WindowMax = MaxSackWords * 64

// Serial is a sequence number that wraps (RFC 1982): it is compared by its methods.
type Serial = serial.U32
