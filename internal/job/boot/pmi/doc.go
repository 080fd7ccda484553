// Package pmi joins jobs that launchers of others start: MPICH's hydra
// (mpiexec), Slurm (srun --mpi=pmi2) and others that speak version 1 or 2 of the
// Process Management Interface. Its Server is the other end, for programs of others
// under our launcher.
//
// PMI-1 is lines of "cmd=name key=value ..." over a socket that the process
// inherits (PMI_FD) or connects to itself (PMI_PORT), a question and its answer
// at a time:
//
//	cmd=init pmi_version=1 pmi_subversion=1     cmd=response_to_init ... rc=0
//	cmd=get_maxes                               cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//	cmd=get_my_kvsname                          cmd=my_kvsname kvsname=K
//	cmd=put kvsname=K key=A value=B             cmd=put_result rc=0
//	cmd=barrier_in                              cmd=barrier_out
//	cmd=get kvsname=K key=A                     cmd=get_result rc=0 value=B
//	cmd=finalize                                cmd=finalize_ack
//	cmd=abort exitcode=N                        (the job ends)
//
// PMI-2 begins with the same line and goes on in frames (frame.go), the length of
// which is left out here:
//
//	cmd=init pmi_version=2 pmi_subversion=0     cmd=response_to_init ... rc=0
//	cmd=fullinit;pmijobid=J;pmirank=R;threaded=FALSE;
//	                                            cmd=fullinit-response;rank=R;size=N;...;rc=0;
//	cmd=job-getid;                              cmd=job-getid-response;jobid=J;rc=0;
//	cmd=kvs-put;key=A;value=B;                  cmd=kvs-put-response;rc=0;
//	cmd=kvs-fence;                              cmd=kvs-fence-response;rc=0;
//	cmd=kvs-get;jobid=J;srcid=R;key=A;          cmd=kvs-get-response;found=TRUE;value=B;rc=0;
//	cmd=info-getjobattr;key=A;wait=FALSE;       cmd=info-getjobattr-response;found=FALSE;rc=0;
//	cmd=finalize;                               cmd=finalize-response;rc=0;
//	cmd=abort;isworld=TRUE;msg=WHY;             (the job ends)
//
// There is no standard; the source is P. Balaji et al., "PMI: A Scalable
// Parallel Process-Management Interface for Extreme-Scale Systems" (EuroMPI
// 2010), MPICH's draft of the wire protocol of PMI-2, and what MPICH's processes,
// hydra and Slurm say to each other. Hydra does not know PMI-2's abort, and ends
// the job for that.
package pmi
