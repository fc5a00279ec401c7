//! Threads that leave the processor to others.

/// Lets this thread run when others do not want to, and now and then even then. There is no way back without rights. Where
/// niceness belongs to processes and not to threads, nothing happens.
pub fn lower() {
    // Linux gives each thread a niceness of its own, whatever POSIX says. A refusal leaves the thread as it was.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
}

/// About a tenth of the weight of other threads: they hardly feel it, and it is not so little that a lock held by such a
/// thread is held for long.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 10;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn only_this_thread_is_lowered() {
        let before = getpriority_process(None).expect("has a priority");
        let inside = std::thread::spawn(|| {
            lower();
            getpriority_process(None).expect("has a priority")
        });
        assert_eq!(inside.join().expect("ends"), BACKGROUND_NICENESS);
        assert_eq!(getpriority_process(None).expect("has a priority"), before);
    }
}
