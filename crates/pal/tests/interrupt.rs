//! Work on a thread pool of its own stops on request, and the same objects then answer as if nothing had happened.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{Constraint, Formula, real};
use pal::interrupt::{Interrupted, Task};
use pal::moments::{Method, integrate};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::shapes;

/// The longest time between a request to stop and the end of the work; longer in unoptimised builds.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 1 });

/// Runs work that takes minutes, stops it, and returns its result and how long stopping took.
fn stop<T: Send>(work: impl FnOnce() -> T + Send) -> (Result<T, Interrupted>, Duration) {
    let task = Task::default();
    let entering = task.clone();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(move |_| entering.enter()).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    pool.in_place_scope(|scope| {
        let inner = &task;
        scope.spawn(move |_| sender.send(inner.run(work)).unwrap());
        let early = receiver.recv_timeout(Duration::from_millis(300));
        assert!(early.is_err(), "the work was over before it could be stopped");
        assert!(task.checkpoints() > 0);
        let start = Instant::now();
        task.stop();
        (receiver.recv().unwrap(), start.elapsed())
    })
}

/// Returns a cube from which many slabs at odd angles are taken out, so that it has far too many cells to enumerate.
fn crumbled(n: usize, slabs: usize) -> Constraint {
    let mut cube = shapes::cube(n);
    let vars: Vec<_> = cube.reals.iter().map(|var| real(var.name())).collect();
    for k in 0..slabs {
        let mut term = pal::formula::Linear::default();
        for (j, var) in vars.iter().enumerate() {
            term = term + (((k * 37 + j * 61) % 23) as i64 - 11) * var;
        }
        let wide = 10 * term;
        cube.formula = cube.formula & (wide.le(k as i64) | wide.ge(k as i64 + 1));
    }
    cube
}

#[test]
fn searches_integrals_and_families_stop() {
    let region = Region::new(&crumbled(5, 40)).unwrap();
    let (outcome, time) = stop(|| region.decompose().map(|cells| cells.len()));
    assert_eq!(outcome, Err(Interrupted));
    assert!(time < LIMIT, "{time:?}");

    let cube = Region::new(&shapes::cube(7)).unwrap();
    let p = Polynomial::parse("(x1+2*x2+3*x3+4*x4+5*x5+6*x6+7*x7+1)^12").unwrap();
    let (outcome, time) = stop(|| integrate(&cube, &p, Method::Exact).map(|integral| integral.exact).is_ok());
    assert_eq!(outcome, Err(Interrupted));
    assert!(time < LIMIT, "{time:?}");

    let maze = Region::new(&crumbled(3, 60)).unwrap();
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(12), components: 1 });
    let (outcome, time) = stop(|| Family::new(&maze, &settings).is_ok());
    assert_eq!(outcome, Err(Interrupted));
    assert!(time < LIMIT, "{time:?}");
}

#[test]
fn what_was_stopped_answers_again() {
    let region = Region::new(&crumbled(2, 60)).unwrap();
    let before = region.exact_volume().unwrap();
    let big = Region::new(&crumbled(5, 40)).unwrap();
    assert!(stop(|| (big.decompose().is_ok(), region.exact_volume().is_ok())).0.is_err());
    assert_eq!(region.exact_volume().unwrap(), before);
    assert!(big.cells().next().unwrap().is_ok());
}

#[test]
fn a_panic_is_not_an_interruption() {
    let task = Task::default();
    let caught = std::panic::catch_unwind(|| task.run(|| std::panic::resume_unwind(Box::new(7))));
    assert_eq!(caught.unwrap_err().downcast_ref::<i32>(), Some(&7));
    assert_eq!(task.run(Formula::yes).map(|f| f.is_true()), Ok(true));
}
