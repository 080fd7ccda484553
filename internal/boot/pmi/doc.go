// Package pmi joins jobs that launchers of others start: MPICH's hydra
// (mpiexec), Slurm (srun --mpi=pmi2) and whoever else speaks version 1 of the
// Process Management Interface.
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
// There is no standard; the source is P. Balaji et al., "PMI: A Scalable
// Parallel Process-Management Interface for Extreme-Scale Systems" (EuroMPI
// 2010), and what MPICH's processes and hydra say to each other.
package pmi
