//! Whole recordings: what the command says equals a plain evaluation, at every version.
use crate::informant::{File, informant, informant_fed};
use informant_tests::trace::{Expectation, Trace, evaluate, generate};
use serde_json::{Value, json};

const INDEXES: [&str; 4] = [
    "label:qos",
    "label:num-gpu",
    "status.phase",
    "spec.nodeName",
];

fn replay(file: &File, until: Option<u64>) -> Value {
    let until = until.map(|until| until.to_string());
    let mut arguments = vec!["replay", file.path(), "--json"];
    for index in INDEXES {
        arguments.extend(["--index", index]);
    }
    if let Some(until) = &until {
        arguments.extend(["--until", until]);
    }
    let run = informant(&arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

fn assert_equal(report: &Value, expected: &Expectation, at: &str) {
    assert_eq!(
        report["resourceVersion"], *expected.resource_version,
        "{at}"
    );
    assert_eq!(report["objects"], expected.objects, "{at}");
    assert_eq!(report["indexes"], json!(expected.indexes), "{at}");
    assert_eq!(report["errors"], 0, "{at}");
}

fn expect(trace: &Trace, until: Option<u64>) -> Expectation {
    evaluate(trace.lines.iter().map(String::as_str), until, &INDEXES)
}

#[test]
fn every_recording_ends_where_a_plain_evaluation_does() {
    for seed in 0..6 {
        let trace = generate(seed, 1500);
        let file = File::new(trace.text());
        let mut untils: Vec<Option<u64>> = vec![None, Some(0)];
        // Versions of frames, and versions between them.
        for version in trace.versions.iter().step_by(173) {
            untils.extend([Some(version - 1), Some(*version), Some(version + 1)]);
        }
        for until in untils {
            let at = format!("seed {seed}, --until {until:?}");
            assert_equal(&replay(&file, until), &expect(&trace, until), &at);
        }
    }
}

/// These numbers were written down once: the generator, the evaluation and the command agree on
/// them, so none of the three can change unnoticed.
#[test]
fn the_recording_of_seed_7_holds_what_it_always_held() {
    let trace = generate(7, 3000);
    let file = File::new(trace.text());
    let golden = |until: u64| {
        let report = replay(&file, Some(until));
        (
            report["resourceVersion"].as_str().unwrap().to_owned(),
            report["objects"].as_u64().unwrap(),
            report["indexes"]["label:qos"].to_string(),
        )
    };
    let versions = [1, 2, 4].map(|part| trace.versions[trace.versions.len() * part / 4 - 1]);
    let found = versions.map(golden);
    let expected =
        GOLDEN.map(|(version, objects, qos)| (version.to_owned(), objects, qos.to_owned()));
    assert_eq!(found, expected);
}

const GOLDEN: [(&str, u64, &str); 3] = [
    (
        "2858",
        60,
        r#"{"BE":11,"Burstable":17,"Guaranteed":12,"LS":20}"#,
    ),
    (
        "4645",
        61,
        r#"{"BE":8,"Burstable":17,"Guaranteed":16,"LS":20}"#,
    ),
    (
        "8715",
        58,
        r#"{"BE":16,"Burstable":17,"Guaranteed":13,"LS":12}"#,
    ),
];

#[test]
fn the_standard_input_is_a_file_too() {
    let trace = generate(3, 300);
    let run = informant_fed(&["replay", "-", "--json"], trace.text().as_bytes());
    assert_eq!(run.json()["objects"], expect(&trace, None).objects);
}
