//! `/sandbox`: describes the confinement of commands, and removes the files that trials left for later trials.

use crate::blocking::blocking;
use crate::chat::chat_context::ChatContext;
use crate::config::ConfinementSetting;
use crate::network::try_access;
use crate::trial::Layer;

/// Carries out `/sandbox` and `/sandbox clean`.
pub(in crate::chat) async fn sandbox(context: &ChatContext, args: &str) {
    match args.trim() {
        "clean" => clear_trials(context).await,
        _ => context.say(words(context).await),
    }
}

/// Returns a line about the confinement of approved commands, and of commands that run without approval. The line also names the
/// levels that the person can choose instead.
async fn words(context: &ChatContext) -> String {
    let isolation = context.services.probe.isolation().await;
    let inside = isolation.in_container();
    let engine = match inside {
        true => isolation.try_limits().await,
        false => isolation.check_engine().await.map(|()| String::new()),
    };
    let approved = match (isolation.approved_words(), &engine) {
        (Ok(_), Err(fault)) if inside => format!("approved commands are refused: {fault}"),
        (Ok(words), Ok(tried)) if inside => format!("{words}; {tried}"),
        (Ok(words), _) => words,
        (Err(refused), _) => format!("approved commands are refused: {refused}"),
    };
    let other = match isolation.other() {
        Some(ConfinementSetting::Landlock) => " (/sandbox landlock confines them to the workspace)",
        Some(_) => " (/sandbox subprocess ends this)",
        None => "",
    };
    let container = match engine {
        _ if inside => String::new(),
        Ok(_) => "; /sandbox docker runs them in a container".to_owned(),
        Err(fault) => format!("; no container can run: {fault}"),
    };
    let dir = context.services.places.trials.clone();
    let left = blocking(move || Ok::<_, String>(Layer::bytes_left(&dir)));
    let left = match left.await {
        Ok(0) | Err(_) => String::new(),
        Ok(bytes) => {
            let size = co_text::size_text(bytes);
            format!("; trials left {size} for later ones (/sandbox clean removes it)")
        }
    };
    let (trials, hosts) = match isolation.confines() && !inside {
        true => (trial_words(context).await, host_words(context).await),
        false => Default::default(),
    };
    format!(
        "{approved}{other}; {}{trials}{hosts}{container}{left}",
        isolation.unasked_words()
    )
}

/// Returns the reason why trials are refused, as the end of a sentence; empty if trials are possible.
async fn trial_words(context: &ChatContext) -> String {
    let judge = context.judge();
    let checked = blocking(move || judge.check_trial()).await;
    checked.map_or_else(|why| format!("; {why}"), |()| String::new())
}

/// Tests whether a command can reach hosts. Returns the result as the end of a sentence.
async fn host_words(context: &ChatContext) -> String {
    let tried = try_access(&context.services.executor).await;
    let words = tried.map_or_else(|why| why, str::to_owned);
    format!("; {words}")
}

/// Removes the files that trials left for later trials.
async fn clear_trials(context: &ChatContext) {
    let dir = context.services.places.trials.clone();
    let launcher = context.services.executor.launcher();
    let removals = launcher.map(|it| it.removals().clone()).unwrap_or_default();
    match blocking(move || Layer::clear(&dir, &removals)).await {
        Ok(cleared) => context.say(cleared.sentence()),
        Err(why) => context.complain(format!("what trials left cannot be removed: {why}")),
    }
}
