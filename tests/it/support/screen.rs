//! The screen of a terminal, from Neovim's redraw events (`ext_linegrid`, `ext_hlstate`).

use std::collections::HashMap;
use std::sync::Arc;

use rmpv::Value;

/// One cell: what is in it and the highlight it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    /// Empty in the right half of a wide character.
    text: String,
    highlight: u64,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            text: " ".to_owned(),
            highlight: 0,
        }
    }
}

/// One row; frames share the rows that did not change between them.
type Row = Arc<Vec<Cell>>;

/// The grid as of the last flush, and what has come since.
#[derive(Debug, Default)]
pub(super) struct Screen {
    rows: Vec<Row>,
    highlights: Arc<HashMap<u64, Vec<String>>>,
    shown: Shown,
}

/// One whole frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    rows: Vec<Row>,
    highlights: Arc<HashMap<u64, Vec<String>>>,
    /// The number of frames before this one.
    pub(super) frame: u64,
}

impl Shown {
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |row: &Row| {
            let text: String = row.iter().map(|cell| cell.text.as_str()).collect();
            text.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        (
            self.rows.len(),
            self.rows.first().map_or(0, |row| row.len()),
        )
    }

    /// Returns the column where the byte `at` of a row's text is.
    pub(super) fn column(&self, row: usize, at: usize) -> usize {
        let mut bytes = 0;
        let before = |cell: &&Cell| {
            bytes += cell.text.len();
            bytes <= at
        };
        self.rows[row].iter().take_while(before).count()
    }

    /// Returns the names of the highlight groups in force at a cell.
    pub(super) fn groups(&self, row: usize, column: usize) -> Vec<String> {
        let cell = self.rows.get(row).and_then(|row| row.get(column));
        let groups = cell.and_then(|cell| self.highlights.get(&cell.highlight));
        groups.cloned().unwrap_or_default()
    }
}

impl Screen {
    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Takes the parameters of one `redraw` notification.
    pub(super) fn redraw(&mut self, events: &[Value]) {
        for event in events {
            let Some((name, calls)) = event.as_array().and_then(|event| event.split_first()) else {
                continue;
            };
            for call in calls {
                if let (Some(name), Some(args)) = (name.as_str(), call.as_array()) {
                    self.event(name, args);
                }
            }
        }
    }

    fn event(&mut self, name: &str, args: &[Value]) {
        match name {
            "grid_resize" => self.resize(index(args, 2), index(args, 1)),
            "grid_clear" => {
                for row in &mut self.rows {
                    Arc::make_mut(row).fill(Cell::default());
                }
            }
            "grid_line" => self.line(args),
            "grid_scroll" => self.scroll(args),
            "hl_attr_define" => self.define(args),
            "flush" => {
                self.shown = Shown {
                    rows: self.rows.clone(),
                    highlights: self.highlights.clone(),
                    frame: self.shown.frame + 1,
                };
            }
            _ => {}
        }
    }

    fn resize(&mut self, height: usize, width: usize) {
        self.rows.resize(height, Row::default());
        for row in &mut self.rows {
            Arc::make_mut(row).resize(width, Cell::default());
        }
    }

    /// `grid, row, column, [[text, highlight?, repeat?], …]`; a highlight left out is the last one.
    fn line(&mut self, args: &[Value]) {
        let Some(row) = self.rows.get_mut(index(args, 1)) else {
            return;
        };
        let row = Arc::make_mut(row);
        let mut column = index(args, 2);
        let mut highlight = 0;
        for cell in args.get(3).and_then(Value::as_array).into_iter().flatten() {
            let Some(cell) = cell.as_array() else {
                continue;
            };
            highlight = cell.get(1).and_then(Value::as_u64).unwrap_or(highlight);
            let repeat = cell.get(2).map_or(1, |_| index(cell, 2));
            for _ in 0..repeat {
                if let Some(place) = row.get_mut(column) {
                    place.text = cell
                        .first()
                        .and_then(Value::as_str)
                        .unwrap_or("")
                        .to_owned();
                    place.highlight = highlight;
                }
                column += 1;
            }
        }
    }

    /// `grid, top, bottom, left, right, rows, columns`: rows move up where `rows` is positive.
    fn scroll(&mut self, args: &[Value]) {
        let (top, bottom) = (index(args, 1), index(args, 2).min(self.rows.len()));
        let (left, right) = (index(args, 3), index(args, 4));
        let by = args.get(5).and_then(Value::as_i64).unwrap_or(0);
        let old = self.rows.clone();
        for (row, cells) in self.rows.iter_mut().enumerate().take(bottom).skip(top) {
            let from = i64::try_from(row)
                .ok()
                .and_then(|row| usize::try_from(row + by).ok());
            let Some(from) = from.filter(|from| (top..bottom).contains(from)) else {
                continue;
            };
            let right = right.min(cells.len());
            Arc::make_mut(cells)[left..right].clone_from_slice(&old[from][left..right]);
        }
    }

    /// `id, rgb, cterm, [{hi_name, ui_name, …}, …]`.
    fn define(&mut self, args: &[Value]) {
        let mut names = Vec::new();
        for info in args.get(3).and_then(Value::as_array).into_iter().flatten() {
            for (key, value) in info.as_map().into_iter().flatten() {
                if matches!(key.as_str(), Some("hi_name" | "ui_name")) {
                    names.extend(value.as_str().map(str::to_owned));
                }
            }
        }
        let id = args.first().and_then(Value::as_u64).unwrap_or(0);
        Arc::make_mut(&mut self.highlights).insert(id, names);
    }
}

fn index(args: &[Value], at: usize) -> usize {
    let number = args.get(at).and_then(Value::as_u64).unwrap_or(0);
    usize::try_from(number).unwrap()
}
