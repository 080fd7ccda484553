package verbs

import "github.com/xwarp/xwarp/internal/mono"

type cmState struct{ deadline mono.Time }

func (c *Context) expireCM(now mono.Time) int { return 0 }
func (id *CMID) established()                 {}
func (id *CMID) ended(err error)              {}
