//! Shows the version of Landlock, and the features that this version lacks.

use super::check::{Check, CheckLevel};
use co_exec::sandbox::SandboxReport;

/// Returns the version of Landlock and the features that this version lacks. Returns `None` if the system has no Landlock.
pub(super) fn check(report: &SandboxReport) -> Option<Check> {
    let version = report.support().abi?;
    let lacks = report.lacks();
    Some(match lacks.is_empty() {
        true => Check::ok(
            "landlock",
            format!("version {version} has all features that co uses"),
        ),
        false => Check::bad(
            "landlock",
            CheckLevel::Warn,
            format!(
                "version {version} lacks features of version 6: {}",
                lacks.join("; ")
            ),
            "use Linux 6.12 or later",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_exec::sandbox::SandboxSupport;

    #[test]
    fn it_says_what_an_older_version_lacks() {
        let check = |version, level, lacks: usize| {
            let support = SandboxSupport {
                abi: version,
                ..SandboxSupport::default()
            };
            let report = SandboxReport::new("".into(), "".into()).with_support(support);
            let told = super::check(&report);
            assert_eq!(told.as_ref().map(|it| it.level), level, "{told:?}");
            let message = told.map(|it| it.message).unwrap_or_default();
            let named = report
                .lacks()
                .iter()
                .filter(|what| message.contains(**what))
                .count();
            assert_eq!(named, lacks, "{message}");
        };
        check(Some(1), Some(CheckLevel::Warn), 4);
        check(Some(2), Some(CheckLevel::Warn), 3);
        check(Some(4), Some(CheckLevel::Warn), 2);
        check(Some(5), Some(CheckLevel::Warn), 1);
        check(Some(6), Some(CheckLevel::Ok), 0);
        check(Some(9), Some(CheckLevel::Ok), 0);
        check(None, None, 0);
    }
}
