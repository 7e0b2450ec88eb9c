// A very small stand-in for the Catch test framework: it speaks the part of Catch's command line which the harness
// uses (`-r junit -o FILE`), and has the few macros which the exercises need, so that they carry no foreign code.
#pragma once

#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__clang__)  // `Capture() << a == b` below is meant as it stands
#pragma clang diagnostic ignored "-Woverloaded-shift-op-parentheses"
#endif

namespace catch_stand_in {

struct Site { std::string kind, text, file; int line; };
struct Failure { Site site; std::string reason; bool thrown; };  // by an exception, else by a check which does not hold
struct Test { Site site; void (*body)(); std::vector<Failure> failures; double seconds; };
struct Abort {};  // thrown to leave a test at a REQUIRE which fails

inline std::vector<Test> tests;
inline std::vector<Failure> failures;  // of the test which is running
inline Site reached;  // its last check or its start: an exception came from there or from soon after

struct Registration {
    Registration(const char* file, int line, void (*body)(), const char* name, const char* /* tags */ = "") {
        tests.push_back({{"TEST_CASE", name, file, line}, body, {}, 0});
    }
};

template <typename T> std::string show(const T& value) {
    std::ostringstream out;
    if constexpr (std::is_convertible_v<T, std::string>) out << '"' << std::string(value) << '"';
    else if constexpr (std::is_enum_v<T>) out << static_cast<long long>(value);
    else out << std::boolalpha << value;
    return out.str();
}

// `Capture() << a == b` meets the left side first and then the right one, so that a failure can show both values.
// Other comparisons, and values which cannot be printed, need a second pair of brackets: `REQUIRE((a < b))`.
struct Outcome { bool holds; std::string values; };
template <typename L> struct Left {
    const L& left;
    operator Outcome() const { return {static_cast<bool>(left), show(left)}; }
    template <typename R> Outcome operator==(const R& right) const {
        return {left == right, show(left) + " == " + show(right)};
    }
};
struct Capture { template <typename L> Left<L> operator<<(const L& left) const { return {left}; } };

inline void check(const Outcome& outcome, bool wanted, bool fatal) {
    if (outcome.holds == wanted) return;
    failures.push_back({reached, (wanted ? "failed: " : "holds but should not: ") + outcome.values, false});
    if (fatal) throw Abort{};
}

template <typename E, typename F> Outcome throws(const F& body) {
    try {
        body();
    } catch (const E&) {
        return {true, ""};
    }
    return {false, "nothing was thrown"};
}

inline void run(Test& test) {
    const auto start = std::chrono::steady_clock::now();
    failures.clear();
    reached = test.site;
    try {
        test.body();
    } catch (const Abort&) {
    } catch (const std::exception& error) {
        failures.push_back({reached, std::string("unexpected exception: ") + error.what(), true});
    } catch (...) {
        failures.push_back({reached, "unexpected exception of an unknown type", true});
    }
    test.failures = failures;
    test.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline std::string basename(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

inline std::string details(const Failure& failure) {
    const Site& site = failure.site;
    const std::string place = basename(site.file) + ":" + std::to_string(site.line);
    return site.kind + "( " + site.text + " )\n" + failure.reason + "\nat " + place + "\n";
}

// XML has no place for most control characters, nor for bytes which are not UTF-8: anything but ASCII becomes `?`.
inline std::string xml(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        const bool special = c == '<' || c == '>' || c == '&' || c == '"' || c == '\n';
        if (special) safe += "&#" + std::to_string(static_cast<int>(c)) + ";";
        else safe += c >= ' ' && c <= '~' ? c : '?';
    }
    return safe;
}

inline std::size_t count(bool thrown) {
    std::size_t found = 0;
    for (const Test& test : tests)
        for (const Failure& failure : test.failures) found += failure.thrown == thrown ? 1 : 0;
    return found;
}

inline void write_junit(std::ostream& out, const std::string& program) {
    out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"" << xml(program)
        << "\" tests=\"" << tests.size() << "\" failures=\"" << count(false) << "\" errors=\"" << count(true) << "\">\n"
        << std::fixed;
    for (const Test& test : tests) {
        out << "<testcase classname=\"" << xml(program) << ".global\" name=\"" << xml(test.site.text) << "\" time=\""
            << test.seconds << "\">\n";
        for (const Failure& failure : test.failures) {
            const std::string tag = failure.thrown ? "error" : "failure";
            out << "<" << tag << " message=\"" << xml(failure.site.text) << "\" type=\"" << failure.site.kind << "\">"
                << xml(details(failure)) << "</" << tag << ">\n";
        }
        out << "</testcase>\n";
    }
    out << "</testsuite>\n</testsuites>\n";
}

inline void write_text(std::ostream& out) {
    std::size_t failed = 0;
    for (const Test& test : tests) failed += test.failures.empty() ? 0 : 1;
    for (const Test& test : tests)
        for (const Failure& failure : test.failures)
            out << "FAILED: " << test.site.text << "\n" << details(failure) << "\n";
    out << tests.size() << " tests, " << failed << " failed\n";
}

inline int session(const std::vector<std::string>& words) {
    std::string reporter, file;
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) (words[i] == "-r" ? reporter : file) = words[i + 1];
    for (Test& test : tests) run(test);
    std::ofstream target(file);
    std::ostream& out = file.empty() ? std::cout : target;
    if (reporter == "junit") write_junit(out, basename(words[0]));
    else write_text(out);
    const std::size_t failed = count(false) + count(true);
    return !out.flush() || failed > 255 ? 255 : static_cast<int>(failed);  // like Catch: how many checks did not hold
}

}  // namespace catch_stand_in

#define CATCH_JOIN_(a, b) a##b
#define CATCH_JOIN(a, b) CATCH_JOIN_(a, b)
#define CATCH_TEST(body, ...)                                                                                   \
    static void body();                                                                                         \
    static const catch_stand_in::Registration CATCH_JOIN(body, _entry)(__FILE__, __LINE__, body, __VA_ARGS__);  \
    static void body()
#define CATCH_CHECK(kind, text, wanted, fatal, ...)                                                             \
    do {                                                                                                        \
        catch_stand_in::reached = {kind, text, __FILE__, __LINE__};                                             \
        catch_stand_in::check(__VA_ARGS__, wanted, fatal);                                                      \
    } while (false)
#define CATCH_SHOW catch_stand_in::Capture() <<

#define TEST_CASE(...) CATCH_TEST(CATCH_JOIN(catch_test_, __LINE__), __VA_ARGS__)
#define REQUIRE(...) CATCH_CHECK("REQUIRE", #__VA_ARGS__, true, true, CATCH_SHOW __VA_ARGS__)
#define REQUIRE_FALSE(...) CATCH_CHECK("REQUIRE_FALSE", #__VA_ARGS__, false, true, CATCH_SHOW __VA_ARGS__)
#define CHECK(...) CATCH_CHECK("CHECK", #__VA_ARGS__, true, false, CATCH_SHOW __VA_ARGS__)
#define REQUIRE_THROWS_AS(expression, type)                                                                     \
    CATCH_CHECK("REQUIRE_THROWS_AS", #expression ", " #type, true, true,                                        \
                catch_stand_in::throws<type>([&] { static_cast<void>(expression); }))

#if defined(CATCH_CONFIG_MAIN)
int main(int count, char** words) { return catch_stand_in::session({words, words + count}); }
#endif
