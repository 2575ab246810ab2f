//! `pal man`: manual pages.

use std::io::Write;

use anyhow::{Result, anyhow};
use clap::CommandFactory;

use crate::Outcome;

/// Print a manual page
///
/// In the format of `man`. Without a command it is the page of the program.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal man | man -l -\n  \
    pal man train > ~/.local/share/man/man1/pal-train.1\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The command whose page is printed
    #[arg(value_name = "COMMAND")]
    about: Option<String>,
}

/// Writes the page of the program `C`, or of one of its commands.
pub fn run<C: CommandFactory>(args: &Args) -> Result<Outcome> {
    let mut program = C::command();
    program.build();
    let command = match &args.about {
        None => program,
        Some(name) => {
            let known: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
            let missing = || anyhow!("there is no command `{name}`; the commands are {}", known.join(", "));
            program.find_subcommand(name).cloned().ok_or_else(missing)?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(Outcome::Done)
}
