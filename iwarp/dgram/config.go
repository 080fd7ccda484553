package dgram

import "github.com/xwarp/xwarp/internal/arq"

// Config tunes reliable datagrams. Zero values mean the defaults.
type Config = arq.Config

// WindowMax is the largest window in ULPDUs: what MaxSackWords words can
// describe.
const WindowMax = MaxSackWords * 64
