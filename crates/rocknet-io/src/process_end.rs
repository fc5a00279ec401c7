//! Waits for the end of a process without reaping it, so that another thread can still signal its group.

#[cfg(target_os = "linux")]
#[path = "process_end/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "process_end/unsupported.rs"]
mod system;

pub use system::{ProcessDescriptor, ProcessEnd};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::task::Poll;

    use super::{ProcessDescriptor, ProcessEnd};
    use crate::runtime::Runtime;

    #[test]
    fn the_end_is_reported_before_the_process_is_reaped() {
        // The program ends when its standard input is closed. Its child keeps the standard output open.
        let mut program = Command::new("sh");
        let program = program.args(["-c", "sleep 1000 & echo $!; read line"]);
        let mut program = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let descriptor = ProcessDescriptor::open(program.id()).expect("a descriptor");
        let mut child = Vec::new();
        let mut output = program.stdout.take().expect("its output");
        while !child.ends_with(b"\n") {
            let mut byte = [0];
            output.read_exact(&mut byte).expect("the ID of the child");
            child.push(byte[0]);
        }
        let runtime = Runtime::new(16).expect("a runtime");
        runtime.block_on(async {
            let end = ProcessEnd::new(descriptor).expect("a registration");
            poll_fn(|context| {
                assert!(end.poll(context).is_pending(), "it waits for its input");
                Poll::Ready(())
            })
            .await;
            drop(program.stdin.take());
            poll_fn(|context| end.poll(context)).await;
        });
        assert!(program.try_wait().expect("a child").is_some());
        let child = String::from_utf8(child).expect("a number");
        assert!(
            Command::new("kill")
                .arg(child.trim())
                .status()
                .is_ok_and(|status| status.success())
        );
    }

    #[test]
    fn no_descriptor_is_opened_for_a_process_that_does_not_exist() {
        assert!(ProcessDescriptor::open(0).is_none());
        assert!(ProcessDescriptor::open(u32::MAX).is_none());
    }
}
