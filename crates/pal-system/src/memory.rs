//! How much memory there is, and how much this process takes. Linux tells, in files; elsewhere nothing is known.

use std::fs;

/// The memory that this process may still take; no limit where the system does not tell.
pub fn free() -> u64 {
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemAvailable:"));
    // What the control group of the process may take; `max` is no number.
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    available.into_iter().chain(group).min().unwrap_or(u64::MAX)
}

/// The memory that this process takes; 0 where the system does not tell.
pub fn used() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|text| kilobytes(&text, "VmRSS:")).unwrap_or(0)
}

/// An amount of memory for people.
pub fn amount(bytes: f64) -> String {
    match bytes {
        few if few < 1e9 => format!("{:.1} MB", few / 1e6),
        more if more < 1e15 => format!("{:.1} GB", more / 1e9),
        most => format!("{most:.1e} bytes"),
    }
}

/// The bytes of a line such as `VmRSS:  1234 kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_readable() {
        assert_eq!([5e6, 2.5e10, 1e20].map(amount), ["5.0 MB", "25.0 GB", "1.0e20 bytes"]);
        assert_eq!(kilobytes("Vm: x\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12 << 10));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_knows_its_memory() {
        assert!(used() > 1 << 19 && (1 << 20..u64::MAX).contains(&free()), "{} {}", used(), free());
    }
}
