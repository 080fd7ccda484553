package capi

// There are no events, and no sources of them: no index, name or handle of one is valid.

// without is the error of a call that needs what there is none of.
func (l *Lib) without(code toolsError) error {
	return l.inTools(func(*tools) error { return code })
}

func (l *Lib) noIndex() error { return l.without(MPI_T_ERR_INVALID_INDEX) }

func (l *Lib) noHandle() error { return l.without(MPI_T_ERR_INVALID_HANDLE) }

func (l *Lib) none(n Ints) error {
	return l.inTools(func(*tools) error {
		n.set(0, 0)
		return nil
	})
}

// TEventGetNum is MPI_T_event_get_num.
func TEventGetNum(l *Lib, n Ints) error { return l.none(n) }

// TEventGetInfo is MPI_T_event_get_info.
func TEventGetInfo(l *Lib, _ int, _ Text, _, _ Ints, _ Handles, _, _ Ints, _ Addr, _ Handles, _ Text, _, _ Ints) error {
	return l.noIndex()
}

// TEventGetIndex is MPI_T_event_get_index.
func TEventGetIndex(l *Lib, _ string, _ Ints) error { return l.without(MPI_T_ERR_INVALID_NAME) }

// TEventHandleAlloc is MPI_T_event_handle_alloc.
func TEventHandleAlloc(l *Lib, _ int, _ Addr, _ Handle, _ Addr) error { return l.noIndex() }

// TEventHandleFree is MPI_T_event_handle_free.
func TEventHandleFree(l *Lib, _, _, _ Addr) error { return l.noHandle() }

// TEventHandleGetInfo is MPI_T_event_handle_get_info.
func TEventHandleGetInfo(l *Lib, _ Addr, _ Handles) error { return l.noHandle() }

// TEventHandleSetInfo is MPI_T_event_handle_set_info.
func TEventHandleSetInfo(l *Lib, _ Addr, _ Handle) error { return l.noHandle() }

// TEventRegisterCallback is MPI_T_event_register_callback.
func TEventRegisterCallback(l *Lib, _ Addr, _ int, _ Handle, _, _ Addr) error { return l.noHandle() }

// TEventCallbackGetInfo is MPI_T_event_callback_get_info.
func TEventCallbackGetInfo(l *Lib, _ Addr, _ int, _ Handles) error { return l.noHandle() }

// TEventCallbackSetInfo is MPI_T_event_callback_set_info.
func TEventCallbackSetInfo(l *Lib, _ Addr, _ int, _ Handle) error { return l.noHandle() }

// TEventSetDroppedHandler is MPI_T_event_set_dropped_handler.
func TEventSetDroppedHandler(l *Lib, _, _ Addr) error { return l.noHandle() }

// TEventRead is MPI_T_event_read.
func TEventRead(l *Lib, _ Addr, _ int, _ Addr) error { return l.noHandle() }

// TEventCopy is MPI_T_event_copy.
func TEventCopy(l *Lib, _, _ Addr) error { return l.noHandle() }

// TEventGetTimestamp is MPI_T_event_get_timestamp.
func TEventGetTimestamp(l *Lib, _ Addr, _ Ints) error { return l.noHandle() }

// TEventGetSource is MPI_T_event_get_source.
func TEventGetSource(l *Lib, _ Addr, _ Ints) error { return l.noHandle() }

// TSourceGetNum is MPI_T_source_get_num.
func TSourceGetNum(l *Lib, n Ints) error { return l.none(n) }

// TSourceGetInfo is MPI_T_source_get_info.
func TSourceGetInfo(l *Lib, _ int, _ Text, _ Ints, _ Text, _ Ints, _ Addr, _, _ Ints, _ Handles) error {
	return l.noIndex()
}

// TSourceGetTimestamp is MPI_T_source_get_timestamp.
func TSourceGetTimestamp(l *Lib, _ int, _ Ints) error { return l.noIndex() }
