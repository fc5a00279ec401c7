//! The filter of system calls: a list of those that are denied, as a program for the kernel.
//!
//! The filter lists denied calls instead of permitted ones, because scripts can need any ordinary call, and new
//! versions of the C library and of PHP use further calls.

use std::mem::offset_of;

/// Audit number of the architecture, with which the kernel tags each call. `None`: the filter does not know the
/// architecture.
pub(super) const ARCHITECTURE: Option<u32> = match () {
    () if cfg!(target_arch = "x86_64") => Some(0xC000_003E),
    () if cfg!(target_arch = "aarch64") => Some(0xC000_00B7),
    () => None,
};

/// Flag in the call numbers of x32, an ABI of x86-64 that no distribution enables by default.
const X32_FLAG: u32 = 0x4000_0000;

/// Denied calls.
const DENIED: &[libc::c_long] = &[
    // Mounting and other views of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // Namespaces. `clone` is denied by its flags.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Kernel code, and parts of the kernel in which many faults were found.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Further denied calls on x86-64. aarch64 lacks these calls, except `kexec_file_load`, for which the crate libc does
/// not define a number on every system.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Calls of io_uring, which bypass the filter for the operations that they submit.
const IO_URING: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Flags of `clone` that create namespaces. `CLONE_NEWTIME` is not among them, because `clone` reads its bit as part of
/// a signal number. The flags are in the lower 32 bits of the first argument, which come first in memory on both known
/// architectures.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

// Opcodes of classic BPF.
const LOAD: u16 = opcode(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
const IF_EQUAL: u16 = opcode(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
const IF_AT_LEAST: u16 = opcode(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
const IF_ANY_BIT: u16 = opcode(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K);
const RETURN: u16 = opcode(libc::BPF_RET | libc::BPF_K);

/// Converts an opcode to the type of an instruction.
#[allow(clippy::cast_possible_truncation)] // opcodes have 16 bits
const fn opcode(code: u32) -> u16 {
    code as u16
}

/// Result that permits a call.
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// Returns the result that makes a call fail with this error number.
const fn fail_with(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// Returns the program that the kernel runs for each system call. If `has_io_uring` is false, it denies io_uring, too.
pub(super) fn filter(architecture: u32, has_io_uring: bool) -> Vec<libc::sock_filter> {
    let denied = fail_with(libc::EPERM);
    let mut program = vec![
        // Calls of another architecture are denied, because their numbers have other meanings.
        load(offset_of!(libc::seccomp_data, arch)),
        jump(IF_EQUAL, architecture, 1, 0),
        result(denied),
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    if cfg!(target_arch = "x86_64") {
        program.extend([jump(IF_AT_LEAST, X32_FLAG, 0, 1), result(denied)]);
    }
    // A long list costs little: the kernel compiles the program, and stores which calls the program always allows, so
    // that it need not run for them.
    let io_uring = if has_io_uring { &[] } else { IO_URING };
    for call in DENIED.iter().chain(DENIED_HERE).chain(io_uring) {
        program.extend([jump(IF_EQUAL, number(*call), 0, 1), result(denied)]);
    }
    program.extend([
        // The flags of `clone3` are in memory, which a filter cannot read. After ENOSYS, the C library uses `clone`.
        jump(IF_EQUAL, number(libc::SYS_clone3), 0, 1),
        result(fail_with(libc::ENOSYS)),
        jump(IF_EQUAL, number(libc::SYS_clone), 0, 3),
        load(offset_of!(libc::seccomp_data, args)),
        jump(IF_ANY_BIT, NAMESPACES, 0, 1),
        result(denied),
        result(ALLOW),
    ]);
    program
}

/// Returns the number of a system call in the type that the filter compares. The conversion cannot fail, because all
/// numbers are small and not negative.
fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Loads the 32-bit word at `offset` of `seccomp_data`, the description of the call.
fn load(offset: usize) -> libc::sock_filter {
    libc::sock_filter {
        code: LOAD,
        jt: 0,
        jf: 0,
        k: u32::try_from(offset).unwrap_or(u32::MAX),
    }
}

/// Skips `then` instructions if the condition `code` holds for the loaded value and the operand `k`, else `otherwise`.
fn jump(code: u16, k: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter {
        code,
        jt: then,
        jf: otherwise,
        k,
    }
}

/// Ends the filter with the result `k`, which permits or denies the call.
fn result(k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k,
    }
}
