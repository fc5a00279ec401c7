//! Statics that can change, each with the reason why it belongs to the process. The list only shrinks.

use super::super::listed::Listed;

/// Types of statics without interior mutability.
pub const CONSTANT_TYPES: &[&str] = &[
    "CanonicalCode",
    "ConstField",
    "LibraryTable",
    "MediaType",
    "MiMalloc",
    "NameTable",
    "RawServer",
    "Spelling",
    "StaticField",
];

/// Reason for the statics of the log throttle, which counts error lines where they are written.
const THROTTLE: &str = "lines of the error log are counted for the process, because `tracing` has one dispatcher";

/// Statics that can change.
pub const MUTABLE: &[Listed] = &[
    Listed {
        file: "crates/rocknet-certificates/src/inspection.rs",
        name: "ROOTS",
        reason: "the roots that the machine trusts, read once and then constant",
    },
    Listed {
        file: "crates/rocknet-config/src/keys.rs",
        name: "BY_SECTION",
        reason: "an index of the table of keys, built once and then constant",
    },
    Listed {
        file: "crates/rocknet-controller/src/host/call.rs",
        name: "LOG",
        reason: "a library calls back through a C function without an argument for the server",
    },
    Listed {
        file: "crates/rocknet-io/src/file/linux.rs",
        name: "DEV_NULL",
        reason: "`/dev/null`, opened once and then constant",
    },
    Listed {
        file: "crates/rocknet-io/src/sandbox/linux.rs",
        name: "PROGRAM_FILTER",
        reason: "limits of started programs cannot be lifted, and are read between fork and exec",
    },
    Listed {
        file: "crates/rocknet-io/src/epoll/write_batch.rs",
        name: "CURRENT",
        reason: "the runtime of a thread: one per thread by design",
    },
    Listed {
        file: "crates/rocknet-io/src/io_uring/driver.rs",
        name: "CURRENT",
        reason: "the ring of a thread: one per thread by design",
    },
    Listed {
        file: "crates/rocknet-io/src/sealed_file/portable.rs",
        name: "NEXT",
        reason: "a counter: file names must differ within the process",
    },
    Listed {
        file: "crates/rocknet-io/src/uptime.rs",
        name: "START",
        reason: "origin of the process's clock, set once",
    },
    Listed {
        file: "crates/rocknet-io/src/uptime/portable.rs",
        name: "ORIGIN",
        reason: "origin of the clock of systems without one in nanoseconds, set once",
    },
    Listed {
        file: "crates/rocknet-log/src/throttle.rs",
        name: "NEXT",
        reason: THROTTLE,
    },
    Listed {
        file: "crates/rocknet-log/src/throttle.rs",
        name: "TABLE",
        reason: THROTTLE,
    },
    Listed {
        file: "crates/rocknet-gateway/src/accounts/rights.rs",
        name: "PROGRAM",
        reason: "the program is one for the process, set by `main` before there is a server",
    },
    Listed {
        file: "crates/rocknet-gateway/src/accounts/rights.rs",
        name: "RIGHTS",
        reason: "user and privileges belong to the process, which drops them once",
    },
    Listed {
        file: "crates/rocknet/src/cli/handover.rs",
        name: "OWN_PATH",
        reason: "the path of the program, read once at the start and then constant",
    },
    Listed {
        file: "crates/rocknet/src/handler/controller/private_copy/linux.rs",
        name: "NUMBER",
        reason: "the dynamic loader's names belong to the whole process and must differ",
    },
    Listed {
        file: "crates/rocknet/src/handler/controller/isolated/child_main.rs",
        name: "CONTROL",
        reason: "the process of an isolated library has one link to the server",
    },
    Listed {
        file: "crates/rocknet/src/handler/controller/isolated/program.rs",
        name: "PROGRAM",
        reason: "the program is one for the process, set by `main` before there is a server",
    },
    Listed {
        file: "crates/rocknet-handler/src/port_exhaustion.rs",
        name: "PAUSED",
        reason: "local ports belong to the machine, so a result for a destination applies to every server",
    },
    Listed {
        file: "crates/rocknet-files/src/load.rs",
        name: "PAGES",
        reason: "pages rendered once and then constant",
    },
    Listed {
        file: "xtask/src/bench/client/tls.rs",
        name: "SETTINGS",
        reason: "settings built once and then constant",
    },
];
