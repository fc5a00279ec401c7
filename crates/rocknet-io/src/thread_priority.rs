//! Scheduling priority of threads that work in the background.

/// Lowers the priority of the calling thread, so that it gets little CPU time while other threads are ready to run.
/// Without privileges the thread cannot raise it again. Does nothing on systems where niceness applies to whole
/// processes.
pub fn lower() {
    // On Linux each thread has its own niceness, contrary to POSIX. On failure the thread keeps its priority.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
}

/// Niceness of background threads. The scheduler gives them about a tenth of the weight of other threads, so that they
/// hardly slow those down. With a lower priority, a background thread could hold a lock for too long.
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
