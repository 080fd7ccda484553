// Package verbs offers RDMA verbs over datagrams and over TCP: protection
// domains, memory regions, completion queues and queue pairs with the names and
// meanings of libibverbs, and connections with those of librdmacm, so that
// ibv_post_send(3), rdma_cm(7) and their neighbours are the manual.
//
// Everything made from one [Context] belongs to one engine: one goroutine at a
// time may call into it.
//
// # Where is what
//
//	ibv_open_device             device.Open, or New on a carrier of one's own
//	ibv_close_device            Context.Close
//	ibv_query_device            Context.Attr
//	ibv_alloc_pd                Context.AllocPD
//	ibv_reg_mr                  PD.RegMR
//	ibv_dereg_mr                MR.Dereg
//	ibv_alloc_mw                PD.AllocMW, of type 2
//	ibv_dealloc_mw              MW.Dealloc
//	ibv_create_cq               Context.CreateCQ
//	ibv_destroy_cq              CQ.Destroy
//	ibv_poll_cq                 CQ.Poll, or CQ.Wait, which waits
//	ibv_create_comp_channel     Context.CreateCompChannel
//	ibv_destroy_comp_channel    CompChannel.Close
//	channel->fd                 CompChannel.FD
//	ibv_req_notify_cq           CQ.ReqNotify
//	ibv_get_cq_event            CompChannel.GetEvent, CompChannel.Wait, CompChannel.WaitFor
//	ibv_ack_cq_events           taking the event acknowledges it
//	ibv_create_srq              PD.CreateSRQ
//	ibv_modify_srq              SRQ.Modify
//	ibv_query_srq               SRQ.Len
//	ibv_post_srq_recv           SRQ.PostRecv, SRQ.PostRecvList
//	ibv_destroy_srq             SRQ.Destroy
//	ibv_create_qp               PD.CreateQP
//	ibv_modify_qp               QP.Modify
//	ibv_query_qp                QP.State
//	ibv_destroy_qp              QP.Destroy
//	ibv_post_send               QP.PostSend, QP.PostSendList
//	ibv_post_recv               QP.PostRecv, QP.PostRecvList
//	ibv_create_ah               PD.CreateAH
//	ibv_create_ah_from_wc       PD.CreateAHFromWC
//	ibv_destroy_ah              AH.Destroy
//	ibv_attach_mcast            QP.AttachMcast
//	ibv_detach_mcast            QP.DetachMcast
//	ibv_get_async_event         Context.GetAsyncEvent, which acknowledges too
//	context->async_fd           Context.AsyncFD
//	IBV_WR_RDMA_READ            OpRDMARead, and so on
//	IBV_SEND_SIGNALED           Signaled, and so on
//	IBV_ACCESS_LOCAL_WRITE      LocalWrite, and so on
//	IBV_WC_REM_ACCESS_ERR       RemAccessErr, and so on
//	IBV_QPS_RTS                 StateRTS, and so on
//	IBV_EVENT_SQ_DRAINED        EventSQDrained, and so on
//	EINVAL, ENOMEM, EBUSY       ErrInvalid, ErrQueueFull, ErrBusy
//
// Connections, of queue pairs of type RC:
//
//	rdma_create_event_channel     Context.CreateCMChannel
//	rdma_destroy_event_channel    CMChannel.Close
//	channel->fd                   CMChannel.FD
//	rdma_get_cm_event             CMChannel.Wait, CMChannel.WaitFor, or CMChannel.GetEvent, which does not block
//	rdma_ack_cm_event             taking the event acknowledges it
//	rdma_event_str                CMEventType.String
//	rdma_create_id                CMChannel.CreateID
//	rdma_destroy_id               CMID.Destroy
//	rdma_bind_addr                CMID.BindAddr
//	rdma_resolve_addr             CMID.ResolveAddr
//	rdma_resolve_route            CMID.ResolveRoute
//	rdma_create_qp                CMID.CreateQP
//	rdma_destroy_qp               QP.Destroy
//	rdma_listen                   CMID.Listen
//	rdma_connect                  CMID.Connect
//	rdma_accept                   CMID.Accept
//	rdma_reject                   CMID.Reject
//	rdma_disconnect               CMID.Disconnect
//	rdma_get_local_addr           CMID.LocalAddr
//	rdma_get_peer_addr            CMID.PeerAddr
//	struct rdma_conn_param        ConnParam
//	RDMA_CM_EVENT_ESTABLISHED     CMEstablished, and so on
//
// # What differs
//
// There is no thread of its own, nor a NIC: everything moves when the
// engine steps, which CQ.Wait and the channels do too. A program that polls
// steps and polls in turns:
//
//	for cq.Poll(wcs) == 0 {
//		ctx.Engine().Step()
//	}
//
// A program that has nothing to do steps all the same, or waits: acknowledgements
// and answers to peers go out in a step.
//
// Queue pairs of type RD need no connection: one of them talks to every peer,
// and work requests name the peer by an address handle, as on UD. A new queue
// pair is in state RTS. An RD peer that is lost flushes its own requests only;
// the queue pair goes on with the others.
//
// Queue pairs of type RC have one connection each, which a CMID makes: iWARP
// over TCP, as any RNIC and Linux's siw speak it. They are in state INIT until
// they are connected, so receives can be posted before, and RTS then. In
// ConnParam 0 means the default, and -1 none. CMAddrResolved and
// CMRouteResolved come at once, as TCP finds its way while it connects; still
// they are there, so that programs keep their shape. The Param of a
// CMConnectRequest can be given to Accept: then each end may have as many Reads
// outstanding as the initiator has asked for.
//
// Completion queues cannot overflow: posting fails instead. Work requests are
// copied when they are posted, and hold a fixed number of elements; NumSGE says how
// many are used. A list of them is a slice, and a bad one is told by its index.
// Inline data are named by InlineData and need no key. Receive buffers of UD begin with the
// message, not with 40 bytes of header; there is no Q_Key, as the job's key is
// in every datagram. Immediate data are 64 bits (RFC 7306) and come with an RDMA
// Write only. Write-Record is what UD has in place of an RDMA Write.
package verbs
