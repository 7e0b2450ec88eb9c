use std::collections::VecDeque;

#[derive(Debug, PartialEq, Eq)]
pub enum LogError {
    NoRoom,
    EmptyLine,
}

#[derive(Debug)]
struct Entry {
    line: String,
    count: usize,
}

#[derive(Debug)]
pub struct RingLog {
    capacity: usize,
    entries: VecDeque<Entry>,
    dropped: usize,
}

impl RingLog {
    pub fn new(capacity: usize) -> Result<Self, LogError> {
        if capacity == 0 {
            return Err(LogError::NoRoom);
        }
        Ok(RingLog {
            capacity,
            entries: VecDeque::new(),
            dropped: 0,
        })
    }

    pub fn push(&mut self, line: &str) -> Result<(), LogError> {
        let line = line.trim_end();
        if line.is_empty() {
            return Err(LogError::EmptyLine);
        }
        match self.entries.back_mut() {
            Some(newest) if newest.line == line => newest.count += 1,
            _ => self.entries.push_back(Entry {
                line: line.to_string(),
                count: 1,
            }),
        }
        if self.entries.len() > self.capacity {
            self.dropped += self.entries.pop_front().map_or(0, |oldest| oldest.count);
        }
        Ok(())
    }

    pub fn lines(&self) -> Vec<String> {
        self.entries
            .iter()
            .map(|entry| match entry.count {
                1 => entry.line.clone(),
                count => format!("{} (x{count})", entry.line),
            })
            .collect()
    }

    pub fn pushed(&self) -> usize {
        self.dropped + self.entries.iter().map(|entry| entry.count).sum::<usize>()
    }

    pub fn dropped(&self) -> usize {
        self.dropped
    }

    pub fn latest(&self, start: &str) -> Option<&str> {
        self.entries
            .iter()
            .rev()
            .map(|entry| entry.line.as_str())
            .find(|line| line.starts_with(start))
    }
}
