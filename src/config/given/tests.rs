use serde_json::json;

use super::*;
use crate::config::value::Kind;

/// Returns a value of the setting's kind that is not its default.
fn other_value(setting: &Setting) -> Value {
    match &setting.kind {
        Kind::Flag(_) => json!(setting.default != "true"),
        Kind::Number(range, _) | Kind::Size(range, _) => json!(range.end()),
        Kind::Limit(range, _) => json!(range.start()),
        Kind::SizeLimit(least, _) => json!(least),
        Kind::Decimal(range, _) => json!(range.end()),
        Kind::Choice(of, _) => json!(of.iter().rfind(|word| **word != setting.default)),
        Kind::Text(_) => json!("other"),
        Kind::Checked { check, .. } => json!(["docker", "1000"].iter().find(|text| check(text))),
        Kind::Words(_) | Kind::Rules(_) | Kind::Argv(_) | Kind::Variables(_) => json!(["OTHER"]),
        Kind::Hosts(_) => json!(["other.example"]),
        Kind::Paths(_) => json!(["/other"]),
        Kind::Url(_) => json!("http://127.0.0.1:1"),
        Kind::Path(_) => json!("~/other"),
        Kind::Pairs(_) | Kind::Object(_) => json!({ "name": "other" }),
        // A tool server has no program of its own.
        Kind::Tables { .. } if setting.name == "mcp_servers" => {
            json!({ "work": { "cmd": ["other"] } })
        }
        Kind::Tables { .. } => json!({ "work": {} }),
        Kind::Prices(_) => json!({ "model": { "input": 1, "output": 2 } }),
    }
}

fn given(setting: &Setting) -> GivenSettings {
    let mut given = GivenSettings::new(Some("/home/ann".into()));
    given
        .put(setting, other_value(setting))
        .expect(setting.name);
    given
}

/// The backend applies each setting that is given late, or says when it applies.
#[test]
fn a_change_of_every_setting_is_applied_or_known() {
    let old = GivenSettings::new(Some("/home/ann".into()));
    for setting in settings() {
        let name = setting.name;
        let new = given(setting);
        assert_ne!(new.config(), Config::default(), "{name}");
        for when in [Applies::Now, Applies::NextChat, Applies::Restart] {
            let changed = old.changed(&new, when);
            let mixed = old.with(&new, when).config();
            if setting.applies == when {
                assert_eq!((changed, mixed), (vec![name], new.config()), "{name}");
            } else {
                assert_eq!((changed, mixed), (vec![], Config::default()), "{name}");
            }
        }
        // Taken back, it changes again.
        assert_eq!(new.changed(&old, setting.applies), [name]);
        assert_eq!(new.with(&old, setting.applies).config(), Config::default());
    }
}

#[test]
fn another_spelling_of_a_value_is_no_change() {
    let setting = settings().find(|it| it.name == "shell_spill_max").unwrap();
    let given = |value| {
        let mut given = GivenSettings::default();
        given.put(setting, value).unwrap();
        given
    };
    let (text, number) = (given(json!("64MiB")), given(json!(64 << 20)));
    assert_eq!(text.changed(&number, setting.applies), [""; 0]);
    // It is the default, too.
    assert_eq!(
        text.changed(&GivenSettings::default(), setting.applies),
        [""; 0]
    );
}

#[test]
fn a_refused_value_leaves_the_earlier_one() {
    let setting = settings().find(|it| it.name == "max_steps").unwrap();
    let mut given = GivenSettings::default();
    given.put(setting, json!(3)).unwrap();
    assert!(given.put(setting, json!("many")).is_err());
    assert_eq!(given.config().max_steps, 3);
}
