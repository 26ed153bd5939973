//! Whether a program's own profiler says that it could not have CUPTI, because cuptop has it.

/// What is said of it, once.
pub(super) const NOTICE: &str = "the program's own profiler could not get CUPTI, which serves one tool at a time, and cuptop has it: \
     its profile is empty or partial. cuptop records everything; for the program's own profile run it without cuptop";

/// Whether a line of the program's output says so: CUPTI's own word for it, or Kineto's for its number (39).
pub(super) fn is_refused(line: &str) -> bool {
    line.contains("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS")
        || (line.contains("CUPTI") && (line.contains("error 39") || line.contains("error: 39")))
        || (line.contains("cuptiSubscribe") && line.contains("39"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_profiler_is_recognised() {
        assert!(is_refused(
            "WARNING: function cbapi_->getCuptiStatus() failed with error CUPTI_ERROR_MULTIPLE_SUBSCRIBERS (39)"
        ));
        assert!(is_refused("[W] CUPTI initialization failed, error 39"));
        assert!(!is_refused("CUPTI initialized"));
        assert!(!is_refused("step 39: loss 0.39, error 39.5"));
    }
}
