use super::*;

#[test]
fn a_variable_that_is_no_setting_is_said_with_the_nearest() {
    let check = |name: &str, told: &[&str]| {
        let layers = Layers {
            file: None,
            lua: &Value::Null,
            env: &|variable| (variable == name).then(|| "sk-secret".to_owned()),
            variables: &[name.to_owned()],
        };
        let read = layers.read();
        assert_eq!(read.given.config(), Config::default());
        assert_eq!(read.problems, told);
    };
    check("CO_CLI_LOG", &[]);
    check("CO_CLIMB", &[]);
    check("PATH", &[]);
    check(
        "CO_CLI_MOEDL",
        &["CO_CLI_MOEDL is set but is not a setting; did you mean CO_CLI_MODEL?"],
    );
    check(
        "CO_CLI_LOGG",
        &["CO_CLI_LOGG is set but is not a setting; did you mean CO_CLI_LOG?"],
    );
    check(
        "CO_CLI_COLOURS",
        &["CO_CLI_COLOURS is set but is not a setting; :help co-settings lists them all"],
    );
}
