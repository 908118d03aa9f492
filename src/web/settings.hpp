// Settings as text, a name and a value on each line (`rate 0.1`), which is what core.js sends, for core/parts/named.hpp.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernels/kernels.hpp"
#include "core/parts/named.hpp"

namespace gristmill::web {

inline std::vector<std::string> split(const std::string& text, char between) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t to = std::min(text.find(between, from), text.size());
        if (to > from) parts.push_back(text.substr(from, to - from));
        from = to + 1;
    }
    return parts;
}

class TextSettings {
  public:
    explicit TextSettings(const std::string& lines) {
        for (const std::string& line : split(lines, '\n')) {
            const auto gap = line.find(' ');
            if (gap == std::string::npos) throw std::invalid_argument("the setting '" + line + "' has no value");
            const std::string name = line.substr(0, gap), value = line.substr(gap + 1);
            if (name == "node") nodes_.push_back(value);
            else values_[name] = value;
        }
    }
    bool given(const char* name) const { return values_.count(name) > 0; }
    std::string text(const char* name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) throw std::invalid_argument(std::string("the setting '") + name + "' is missing");
        return found->second;
    }
    double number(const char* name) const { return parsed(text(name)); }
    std::int64_t whole(const char* name) const { return std::strtoll(text(name).c_str(), nullptr, 10); }
    bool flag(const char* name) const { return text(name) == "true"; }

    // The kernel's program: `node gaussian -1 -1 0 0.5 0` for each operation, children first.
    std::vector<Node> nodes() const {
        std::vector<Node> program;
        for (const std::string& line : nodes_) {
            const auto words = split(line, ' ');
            if (words.size() != 6) throw std::invalid_argument("the kernel '" + line + "' has not six words");
            auto index = [&](std::size_t at) {
                return static_cast<std::int32_t>(std::strtol(words[at].c_str(), nullptr, 10));
            };
            program.push_back({op_named(words[0]), index(1), index(2), index(3), parsed(words[4]), parsed(words[5])});
        }
        return program;
    }

  private:
    static double parsed(const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (end == text.c_str() || *end != '\0') throw std::invalid_argument("a setting is no number: " + text);
        return value;
    }

    std::map<std::string, std::string> values_;
    std::vector<std::string> nodes_;
};

}  // namespace gristmill::web
