package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// WinErrhandler is called with every error that an operation on a window returns, before
// it returns it. See [Errhandler].
type WinErrhandler func(w *Win, err error)

// WinErrorsAreFatal is a WinErrhandler that ends the job (MPI_ERRORS_ARE_FATAL).
func WinErrorsAreFatal(w *Win, err error) { ErrorsAreFatal(w.c, err) }

// SetErrhandler sets the error handler (MPI_Win_set_errhandler).
func (w *Win) SetErrhandler(h WinErrhandler) {
	if h == nil {
		w.handler.Store(nil)
		return
	}
	w.handler.Store(&h)
}

// Errhandler returns the error handler (MPI_Win_get_errhandler).
func (w *Win) Errhandler() WinErrhandler {
	if h := w.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrhandler calls the error handler with an error of the program's
// (MPI_Win_call_errhandler), and returns the error.
func (w *Win) CallErrhandler(err error) error { return w.report(err) }

// report shows an error to the handler and returns it.
func (w *Win) report(err error) error {
	if err != nil && w != nil {
		if h := w.Errhandler(); h != nil {
			h(w, err)
		}
	}
	return err
}

// reportf reports an error of its own.
func (w *Win) reportf(class ErrorClass, op, format string, args ...any) error {
	return w.report(fail(class, op, format, args...))
}

// rmaClasses translates what the layer of windows reports.
var rmaClasses = map[rma.Code]ErrorClass{rma.Sync: ErrRMASync, rma.Range: ErrRMARange, rma.Type: ErrOp}

// wrap makes an error of the layers below one of ours.
func (w *Win) wrap(op string, err error) error {
	if e, ok := errors.AsType[*rma.Error](err); ok {
		return &Error{Class: rmaClasses[e.Code], Op: op, Rank: int(e.Target), Detail: e.Detail}
	}
	if ghost := (*p2p.Error)(nil); errors.As(err, &ghost) && ghost.Code == p2p.PeerLost && ghost.Peer >= len(w.c.p.hosts) {
		return &Error{Class: ErrGhostFailed, Op: op, Rank: -1, Detail: ghost.Detail + ": what it was asked to do since the last flush may be done or not, and the locks that it kept are gone; Win.Fence, on all ranks, makes those that it served serve themselves", Err: ghost.Err}
	}
	return w.c.wrap(op, err)
}

// failed is the end of a call.
func (w *Win) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return w.report(w.wrap(op, err))
}

// WinKeyval is a key of attributes of windows (MPI_Win_create_keyval).
type WinKeyval = KeyvalOf[*Win]

// SetAttr sets an attribute (MPI_Win_set_attr).
func (w *Win) SetAttr(k *WinKeyval, value any) error {
	err := w.live("Win.SetAttr")
	if err == nil {
		err = w.attrs.set("Win.SetAttr", w, k, value)
	}
	return w.report(err)
}

// Attr returns an attribute (MPI_Win_get_attr). Those that MPI defines are methods.
func (w *Win) Attr(k *WinKeyval) (value any, ok bool) {
	if w == nil {
		return nil, false
	}
	return w.attrs.get(k)
}

// DeleteAttr removes an attribute (MPI_Win_delete_attr).
func (w *Win) DeleteAttr(k *WinKeyval) error {
	err := w.live("Win.DeleteAttr")
	if err == nil {
		err = w.attrs.remove("Win.DeleteAttr", w, k)
	}
	return w.report(err)
}

// winHints are the hints of windows, with their defaults (MPI 4.1, section 12.2). Order
// and atomicity of accumulates are always those of the defaults, which is what programs
// may count on that ask for less; no_locks and epochs_used are held against what the program does.
var winHints = [...]infoPair{
	{noLocks, "false"}, {"accumulate_ordering", "rar,raw,war,waw"}, {"accumulate_ops", "same_op_no_op"},
	{"mpi_accumulate_granularity", "0"}, {"same_size", "false"}, {"same_disp_unit", "false"},
	{noncontiguous, "false"}, {windowLayout, layoutTable}, {epochsUsed, epochNames}, {noLoadStore, "false"},
}

// hint takes hints that are known.
func (w *Win) hint(op string, info *Info) error {
	hints := w.hints.Dup()
	for _, known := range winHints {
		value, ok := info.Get(known.key)
		if !ok || (known.key == epochsUsed || known.key == windowLayout) && w.hints != nil { // the window was made for these
			if value, ok = hints.Get(known.key); !ok {
				value = known.value
			}
		}
		if (known.value == "false") && value != "true" && value != "false" {
			return fail(ErrInfoValue, op, "%s is %q; it must be true or false", known.key, value)
		}
		if err := hints.Set(known.key, value); err != nil {
			return err
		}
	}
	value, _ := hints.Get(noLoadStore)
	w.lazy = value == "true"
	err := takeLayout(op, hints)
	if err == nil {
		err = w.epochs.take(op, hints, w.hints == nil)
	}
	if err == nil {
		w.hints = hints
	}
	return err
}

// SetInfo gives hints (MPI_Win_set_info). All ranks call it. Keys that are not known do
// nothing. With symmetric = true, which all of them say, it ends what was started before, waits
// for all, and async_config (on, off, auto or auto-ghosts) holds from there on, in whatever epoch that is.
func (w *Win) SetInfo(info *Info) error {
	const op = "Win.SetInfo"
	err := w.live(op)
	if err == nil {
		err = w.hint(op, info)
	}
	if err == nil {
		err = w.setAsync(op, info)
	}
	return w.failed(op, err)
}

// Info returns the hints that hold (MPI_Win_get_info). The copy belongs to the caller.
func (w *Win) Info() (*Info, error) {
	if err := w.live("Win.Info"); err != nil {
		return nil, w.report(err)
	}
	hints := w.hints.Dup()
	if err := hints.Set(keyMemory, memoryKinds); err != nil || !w.async.served {
		return hints, w.report(err)
	}
	now := "off"
	if rma.RoutesOf(w.w).Now() {
		now = "on"
	}
	return hints, w.report(hints.Set(asyncNow, now))
}
