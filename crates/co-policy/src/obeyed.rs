//! Files that other programs run, or that co and other agents obey. An edit of one asks each time.

use std::path::Path;

/// Files that editors, shells, build tools and agents run or obey when somebody opens or builds the project.
const FILES: &str = ".envrc .nvim.lua .nvimrc .exrc .lazy.lua .gitattributes .gitmodules .gitlab-ci.yml .travis.yml \
    .pre-commit-config.yaml lefthook.yml Jenkinsfile azure-pipelines.yml agents.md claude.md gemini.md co.md .cursorrules \
    .windsurfrules .clinerules copilot-instructions.md build.rs setup.py conftest.py sitecustomize.py noxfile.py \
    build.gradle build.gradle.kts makefile gnumakefile justfile rakefile package.json";

/// Directories whose files are run or obeyed.
const DIRECTORIES: &str = ".co .vscode .idea .github .gitlab .circleci .husky .githooks .cargo .claude .cursor .devcontainer hooks";

/// Returns the reason why an edit of a file asks each time: others run it, or co obeys it.
pub fn reason(path: &Path) -> Option<String> {
    let has = |list: &str, name: &str| {
        let name = name.to_ascii_lowercase();
        list.split_whitespace()
            .any(|it| it.eq_ignore_ascii_case(&name))
    };
    let file = path.file_name()?.to_str()?;
    let directories = path.parent().into_iter().flat_map(Path::iter);
    let mut directories = directories.filter_map(|name| name.to_str());
    let named = match has(FILES, file) {
        true => Some(file),
        false => directories.find(|name| has(DIRECTORIES, name)),
    };
    named.map(|name| format!("programs or agents run or obey `{name}` without asking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_run_or_obey_are_known() {
        for path in [
            ".nvim.lua",
            "deep/.exrc",
            "AGENTS.md",
            "docs/Agents.md",
            ".co/policy.toml",
            ".github/workflows/ci.yml",
            "build.rs",
            "Makefile",
            ".husky/pre-commit",
            "tools/hooks/check",
        ] {
            assert!(reason(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "src/main.rs",
            "src/build.rs.md",
            "README.md",
            "src/co/mod.rs",
            "hooks",
        ] {
            assert_eq!(reason(Path::new(path)), None, "{path}");
        }
    }
}
