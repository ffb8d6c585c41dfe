# Packages for Debian 12, made with CPack by `tools/package`:
#
#   libmltcp1      the shared library of the C interface
#   libmltcp-dev   headers, static libraries, CMake and pkg-config files, examples
#   python3-mltcp  the Python package
#   mltcp-tools    the command, its manual pages and completions, the pages of docs/
#   mltcp-plugins  the plug-in of NCCL
#   mltcp-mpi      the module for hosts that mpirun starts
#   mltcp-metrics  the module that serves metrics for Prometheus
#   libmltcp-gloo0 the Gloo device, with its header
#   libmltcp-torch0  PyTorch's backend; its Python module is in python3-mltcp
#   mltcp-slurm    the plug-ins of Slurm
#
# dpkg-shlibdeps finds the shared libraries that a package needs. This file names only the other dependencies.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mltcp)
set(CPACK_PACKAGE_VENDOR "MLTCP")
set(CPACK_PACKAGE_CONTACT "MLTCP maintainers")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL runtime dev python tools plugins)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libmltcp1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "transport of training jobs, for programs in C
 The shared library of MLTCP: endpoints that send and receive messages, in order
 or by tag, over the kernel's UDP sockets or DPDK, with a congestion control
 that interleaves the bursts of training jobs.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-mltcp)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3, libmltcp1 (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "transport of training jobs, for programs in Python
 Endpoints of MLTCP, over its shared library, and its results for pandas.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libmltcp-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "transport of training jobs, for programs that link it
 Headers, static libraries and examples of MLTCP, a transport whose congestion
 control interleaves the bursts of training jobs that share a network.")
# A program that links the static libraries also links the libraries on which they depend.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libmltcp1 (= ${PROJECT_VERSION}), libfmt-dev, libtomlplusplus-dev, nlohmann-json3-dev, libtbb-dev, libssl-dev, libmicrohttpd-dev")
if(MLTCP_DPDK)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libdpdk-dev")
endif()
if(MLTCP_VERBS)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libibverbs-dev")
endif()

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME mltcp-tools)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "runs training jobs' traffic: simulator, testbed, scheduler
 The command mltcp runs the jobs of an experiment over a network in virtual
 time, across hosts or on a testbed of this machine, under fair sharing, under
 MLTCP and in computed slots, and reports what each policy makes of them.")
# iproute2 creates the interfaces of testbeds. librte-meta-net contains the drivers of ports, which DPDK loads by
# itself.
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS iproute2)
if(MLTCP_DPDK)
  string(APPEND CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS ", librte-meta-net")
endif()
if(MLTCP_VERBS)
  string(APPEND CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS ", ibverbs-providers")
endif()

set(CPACK_DEBIAN_PLUGINS_PACKAGE_NAME mltcp-plugins)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PLUGINS_DESCRIPTION "transport of training jobs, for NCCL
 The network plug-in of NCCL that sends over MLTCP's endpoints, a transport whose
 congestion control interleaves the bursts of training jobs that share a network.")

if(TARGET mltcp_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME mltcp-mpi)
  set(CPACK_DEBIAN_MPI_DESCRIPTION "hosts of mltcp gen that MPI starts
 The module by which mltcp gen --mpi takes its hosts from mpirun or srun (Open
 MPI). Everything else of mltcp does without.")
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "mltcp-tools (= ${PROJECT_VERSION})")
  string(APPEND CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS ", mltcp-mpi")
endif()

if(TARGET mltcp_metrics)
  list(APPEND CPACK_COMPONENTS_ALL metrics)
  set(CPACK_DEBIAN_METRICS_PACKAGE_NAME mltcp-metrics)
  set(CPACK_DEBIAN_METRICS_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_METRICS_DESCRIPTION "metrics of MLTCP for Prometheus
 The module by which programs on MLTCP's transport, and the command mltcp, serve
 their counters over HTTP when asked. Everything else does without.")
  string(APPEND CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS ", mltcp-metrics")
endif()

if(TARGET mltcp_gloo)
  list(APPEND CPACK_COMPONENTS_ALL gloo)
  set(CPACK_DEBIAN_GLOO_PACKAGE_NAME libmltcp-gloo0)
  set(CPACK_DEBIAN_GLOO_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_GLOO_DESCRIPTION "Gloo's collectives over MLTCP
 A device for Gloo, the library of collective operations, on MLTCP's transport,
 with its header for programs.")
  set(CPACK_DEBIAN_GLOO_PACKAGE_SUGGESTS libgloo-dev)
endif()

if(TARGET mltcp_torch)
  list(APPEND CPACK_COMPONENTS_ALL torch)
  set(CPACK_DEBIAN_TORCH_PACKAGE_NAME libmltcp-torch0)
  set(CPACK_DEBIAN_TORCH_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_TORCH_DESCRIPTION "PyTorch's collectives over MLTCP
 What \"import mltcp.torch\" of python3-mltcp loads: the backend mltcp of
 torch.distributed, on MLTCP's transport.")
  # dpkg-shlibdeps finds libmltcp-gloo in this folder.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
  set(CPACK_DEBIAN_TORCH_PACKAGE_DEPENDS
    "libmltcp-gloo0 (= ${PROJECT_VERSION}), python3-mltcp (>= ${PROJECT_VERSION}), python3-torch")
endif()

if(TARGET mltcp_spank)
  list(APPEND CPACK_COMPONENTS_ALL slurm)
  set(CPACK_DEBIAN_SLURM_PACKAGE_NAME mltcp-slurm)
  set(CPACK_DEBIAN_SLURM_PACKAGE_SECTION admin)
  set(CPACK_DEBIAN_SLURM_DESCRIPTION "places jobs of Slurm beside those that they go with
 Plug-ins of Slurm that hand a job's profile to the scheduler of MLTCP, and its
 time slots to its tasks.")
  # Slurm loads only plug-ins that were built for its own release. The version number 0x160508 means 22.05.8.
  file(STRINGS ${MLTCP_SLURM_INCLUDE}/slurm/slurm_version.h slurm_version REGEX "define SLURM_VERSION_NUMBER +0x")
  string(REGEX REPLACE ".*0x(..)(..).*" "0x\\1;0x\\2" slurm_version "${slurm_version}")
  list(GET slurm_version 0 year)
  list(GET slurm_version 1 month)
  math(EXPR year "${year}")
  math(EXPR after "${month} + 101")  # 101 keeps the leading zero
  math(EXPR month "${month} + 100")
  string(SUBSTRING ${month} 1 2 month)
  string(SUBSTRING ${after} 1 2 after)
  set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "slurm-client (>= ${year}.${month}), slurm-client (<< ${year}.${after})")
  set(CPACK_DEBIAN_SLURM_PACKAGE_RECOMMENDS mltcp-tools)
endif()

include(CPack)
