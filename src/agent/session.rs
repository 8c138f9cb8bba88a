//! The modes, options and commands of an agent's session, as the agent reports them, and the person's choices among them.

use co_acp::schema::{
    AvailableCommand, SessionConfigId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionModeId, SessionModeState, SessionUpdate,
};

/// The largest number of commands of an agent that Neovim completes.
const MOST_COMMANDS: usize = 200;

/// The two values of an option that can be on or off.
const ON_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];

/// A slash command of co that changes options of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentOption {
    /// The command `/mode`. It also sets all options that have no slash command.
    Mode,
    Model,
    Effort,
}

/// The person's choice of a value for an option of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentWish {
    pub option: AgentOption,
    /// The word of the value in the slash command, or the name of the value as the agent gives it.
    pub value: String,
}

/// A change of a session that co asks the agent for.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Mode(SessionModeId),
    Option(SessionConfigId, SessionConfigOptionValue),
}

/// A value of an option that the person may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionValue {
    /// The word for the value in the slash command.
    pub word: String,
    pub name: String,
    pub is_current: bool,
    pub change: SessionChange,
}

/// The values of one option.
struct ValueGroup {
    /// True if the slash command is named after the option of this group.
    is_main: bool,
    values: Vec<SessionValue>,
}

/// The change that switches an agent to its plan mode, and the change that switches it back.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanMode {
    pub enter: SessionChange,
    pub leave: SessionChange,
}

/// The modes, options and commands of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionState {
    pub modes: Option<SessionModeState>,
    pub options: Vec<SessionConfigOption>,
    pub commands: Vec<AvailableCommand>,
}

impl AgentOption {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Model => "model",
            Self::Effort => "effort",
        }
    }

    /// Returns the title for the list of the option's values.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mode => "Mode",
            Self::Model => "Model",
            Self::Effort => "Effort",
        }
    }

    fn is_of(self, option: &SessionConfigOption) -> bool {
        match &option.category {
            Some(SessionConfigOptionCategory::Model) => self == Self::Model,
            Some(SessionConfigOptionCategory::ThoughtLevel) => self == Self::Effort,
            _ => self == Self::Mode,
        }
    }
}

impl SessionState {
    /// Applies an update of modes, options or commands. Returns false for other updates, and for a mode that is not known.
    pub fn take(&mut self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.iter();
                self.commands = commands.take(MOST_COMMANDS).cloned().collect();
            }
            SessionUpdate::CurrentModeUpdate(update) => {
                return self.set_mode(&update.current_mode_id);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.options.clone_from(&update.config_options);
            }
            _ => return false,
        }
        true
    }

    /// Returns the values for a slash command. The values of the option after which the command is named come first. The word for
    /// a value of another option begins with the id of this option.
    pub fn values(&self, option: AgentOption) -> Vec<SessionValue> {
        let groups = self.groups(option).into_iter();
        groups.flat_map(|group| group.values).collect()
    }

    /// Returns the values for a slash command, grouped by option.
    fn groups(&self, option: AgentOption) -> Vec<ValueGroup> {
        let is_mode =
            |it: &&SessionConfigOption| it.category == Some(SessionConfigOptionCategory::Mode);
        let of_modes = option == AgentOption::Mode && !self.options.iter().any(|it| is_mode(&it));
        let modes = self.modes.as_ref().filter(|_| of_modes);
        let mut groups: Vec<_> = modes.into_iter().map(modes_of).collect();
        let options = self.options.iter().filter(|it| option.is_of(it));
        let (first, others): (Vec<_>, Vec<_>) =
            options.partition(|it| option != AgentOption::Mode || is_mode(it));
        for it in first.into_iter().chain(others) {
            let is_main = groups.is_empty() && (option != AgentOption::Mode || is_mode(&it));
            let values = values_of(it, is_main);
            groups.push(ValueGroup { is_main, values });
        }
        groups
    }

    /// Returns the change of the session for a choice of the person.
    ///
    /// # Errors
    /// The agent has no such value.
    pub fn find(&self, wish: &AgentWish) -> Result<SessionChange, String> {
        let values = self.values(wish.option);
        let wanted = wish.value.trim();
        let found = values.iter().find(|it| it.word == wanted).or_else(|| {
            let mut named = values.iter();
            named.find(|it| it.name.eq_ignore_ascii_case(wanted))
        });
        if let Some(found) = found {
            return Ok(found.change.clone());
        }
        let option = wish.option.name();
        let known: Vec<_> = values.iter().map(|it| it.word.as_str()).collect();
        Err(match known.is_empty() {
            true => format!("has no {option} to choose"),
            false => format!("has no {option} {wanted}; it has: {}", known.join(", ")),
        })
    }

    /// Returns the name of the current mode, or `None` if the agent has no modes.
    pub fn mode(&self) -> Option<String> {
        let groups = self.groups(AgentOption::Mode);
        let current = groups.iter().filter_map(|group| {
            let current = group.values.iter().find(|it| it.is_current)?;
            (group.is_main || is_plan(&current.word)).then(|| current.name.clone())
        });
        let current: Vec<_> = current.collect();
        (!current.is_empty()).then(|| current.join(", "))
    }

    /// Returns the changes that enter and leave the agent's plan mode, or `None` if the agent has no plan mode.
    pub fn plan_mode(&self) -> Option<PlanMode> {
        let groups = self.groups(AgentOption::Mode);
        groups.iter().find_map(|ValueGroup { values, .. }| {
            let plan = values.iter().find(|it| is_plan(&it.word))?;
            let now = values.iter().find(|it| it.is_current)?;
            Some(PlanMode {
                enter: plan.change.clone(),
                leave: now.change.clone(),
            })
        })
    }

    /// Returns true if the session already has the value that the change would set.
    pub fn is_current(&self, change: &SessionChange) -> bool {
        let values = [AgentOption::Mode, AgentOption::Model, AgentOption::Effort];
        let mut values = values.into_iter().flat_map(|it| self.values(it));
        values.any(|it| it.is_current && it.change == *change)
    }

    /// Applies a change to this state, after the change was sent to the agent.
    pub fn apply(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Mode(mode) => {
                self.set_mode(mode);
            }
            SessionChange::Option(id, value) => {
                let option = self.options.iter_mut().find(|it| it.id == *id);
                match (option.map(|it| &mut it.kind), value) {
                    (
                        Some(SessionConfigKind::Select(select)),
                        SessionConfigOptionValue::ValueId { value },
                    ) => select.current_value = value.clone(),
                    (
                        Some(SessionConfigKind::Boolean(switch)),
                        SessionConfigOptionValue::Boolean { value },
                    ) => switch.current_value = *value,
                    _ => {}
                }
            }
        }
    }

    /// Sets the current mode, as the agent reported it. Returns true if the agent has listed this mode.
    pub fn set_mode(&mut self, mode: &SessionModeId) -> bool {
        if let Some(modes) = &mut self.modes {
            modes.current_mode_id = mode.clone();
        }
        let values = self.values(AgentOption::Mode);
        values.iter().any(|it| it.word == *mode.0)
    }
}

fn is_plan(word: &str) -> bool {
    let value = word.rsplit(':').next().unwrap_or(word);
    value.eq_ignore_ascii_case("plan")
}

fn modes_of(modes: &SessionModeState) -> ValueGroup {
    let value = |mode: &co_acp::schema::SessionMode| SessionValue {
        word: mode.id.to_string(),
        name: mode.name.clone(),
        is_current: mode.id == modes.current_mode_id,
        change: SessionChange::Mode(mode.id.clone()),
    };
    ValueGroup {
        is_main: true,
        values: modes.available_modes.iter().map(value).collect(),
    }
}

/// Returns the values of an option. If `is_main` is false, their words begin with the id of the option.
fn values_of(option: &SessionConfigOption, is_main: bool) -> Vec<SessionValue> {
    let value = |word: &str, name: &str, is_current, value| SessionValue {
        word: match is_main {
            true => word.to_owned(),
            false => format!("{}:{word}", option.id),
        },
        name: match is_main {
            true => name.to_owned(),
            false => format!("{}: {name}", option.name),
        },
        is_current,
        change: SessionChange::Option(option.id.clone(), value),
    };
    match &option.kind {
        SessionConfigKind::Select(select) => {
            let chosen = |it: &SessionConfigSelectOption| {
                let id = SessionConfigOptionValue::ValueId {
                    value: it.value.clone(),
                };
                let is_current = it.value == select.current_value;
                value(&it.value.0, &it.name, is_current, id)
            };
            match &select.options {
                SessionConfigSelectOptions::Ungrouped(values) => {
                    values.iter().map(chosen).collect()
                }
                SessionConfigSelectOptions::Grouped(groups) => {
                    let values = groups.iter().flat_map(|it| &it.options);
                    values.map(chosen).collect()
                }
                _ => Vec::new(),
            }
        }
        SessionConfigKind::Boolean(switch) => {
            let switched = ON_OFF.map(|(word, is_on)| {
                let to = SessionConfigOptionValue::Boolean { value: is_on };
                value(word, word, switch.current_value == is_on, to)
            });
            switched.to_vec()
        }
        // Later versions of the protocol may have others, which the agent then keeps as they are.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_acp::schema::SessionMode;

    fn state() -> SessionState {
        let select = |id: &str, current: &str, values: &[&str]| {
            let values = values.iter();
            let values: Vec<_> = values
                .map(|it| SessionConfigSelectOption::new((*it).to_owned(), it.to_uppercase()))
                .collect();
            let (id, name) = (id.to_owned(), id.to_uppercase());
            SessionConfigOption::select(id, name, current.to_owned(), values)
        };
        SessionState {
            options: vec![
                select("together", "default", &["default", "plan"]),
                SessionConfigOption::boolean("fast", "Fast", false),
                select("access", "all", &["some", "all"])
                    .category(SessionConfigOptionCategory::Mode),
                select("model", "big", &["big", "small"])
                    .category(SessionConfigOptionCategory::Model),
                select("thinks", "low", &["low", "high"])
                    .category(SessionConfigOptionCategory::ThoughtLevel),
            ],
            ..SessionState::default()
        }
    }

    fn words(state: &SessionState, option: AgentOption) -> String {
        let values = state.values(option);
        let word = |it: &SessionValue| match it.is_current {
            true => format!("[{}]", it.word),
            false => it.word.clone(),
        };
        values.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn slash_commands_set_the_options_of_their_category() {
        let mut state = state();
        let all = "some [all] [together:default] together:plan fast:on [fast:off]";
        assert_eq!(words(&state, AgentOption::Mode), all);
        assert_eq!(words(&state, AgentOption::Model), "[big] small");
        assert_eq!(words(&state, AgentOption::Effort), "[low] high");
        assert_eq!(state.mode().as_deref(), Some("ALL"));
        let wish = |option, value: &str| AgentWish {
            option,
            value: value.to_owned(),
        };
        for (option, value) in [
            (AgentOption::Mode, "fast:on"),
            (AgentOption::Mode, "Some"),
            (AgentOption::Effort, "high"),
        ] {
            let change = state.find(&wish(option, value)).unwrap();
            assert!(!state.is_current(&change), "{value}");
            state.apply(&change);
            assert!(state.is_current(&change), "{value}");
        }
        let why = state.find(&wish(AgentOption::Model, "huge")).unwrap_err();
        assert_eq!(why, "has no model huge; it has: big, small");
        let none = SessionState::default();
        let why = none.find(&wish(AgentOption::Effort, "low")).unwrap_err();
        assert_eq!(
            (why.as_str(), none.mode()),
            ("has no effort to choose", None)
        );
    }

    #[test]
    fn a_plan_mode_is_found_among_the_options_and_the_modes() {
        let mut of_options = state();
        let plan = of_options.plan_mode().unwrap();
        of_options.apply(&plan.enter);
        assert_eq!(of_options.mode().as_deref(), Some("ALL, TOGETHER: PLAN"));
        of_options.apply(&plan.leave);
        assert_eq!(of_options, state());
        let modes = vec![
            SessionMode::new("ask", "Ask"),
            SessionMode::new("plan", "Plan"),
        ];
        let of_modes = SessionState {
            modes: Some(SessionModeState::new("ask", modes)),
            ..SessionState::default()
        };
        let plan = of_modes.plan_mode().unwrap();
        assert_eq!(plan.enter, SessionChange::Mode(SessionModeId::new("plan")));
        assert_eq!(of_modes.mode().as_deref(), Some("Ask"));
        assert_eq!(SessionState::default().plan_mode(), None);
    }
}
