//! Scheduling priority of threads that work in the background.

/// Lowers the priority of the calling thread, so that it gets little time while others want to run. The change is
/// permanent without privileges. Where niceness belongs to processes, nothing happens.
pub fn lower() {
    // On Linux each thread has its own niceness, contrary to POSIX. On failure the thread keeps its priority.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
}

/// Gives the thread about a tenth of the weight of others: they hardly notice it. It is not so low that the thread
/// holds a lock for long.
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
