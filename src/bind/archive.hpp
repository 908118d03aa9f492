// The fields of an Archive as a dict of arrays, and back.
#pragma once

#include "bind/bind.hpp"
#include "core/base/archive.hpp"

namespace gristmill::bind {

inline nb::dict to_dict(Archive archive) {
    nb::dict out;
    for (auto& named : archive.fields) {  // no structured binding: Clang 14 cannot capture one
        const std::string& name = named.first;
        Field& field = named.second;
        std::visit([&](auto& values) { out[name.c_str()] = nb::cast(array_of(std::move(values), field.shape)); },
                   field.values);
    }
    return out;
}

// "points" is not a field: it is read as rows.
inline Archive from_dict(nb::dict state) {
    std::vector<std::pair<std::string, Field>> fields;
    for (const auto& item : state) {
        const auto name = nb::cast<std::string>(item.first);
        const nb::handle value = item.second;
        if (name == "points") continue;
        Field field;
        auto read = [&]<class T>(std::vector<T> values) {
            nb::ndarray<const T, nb::c_contig, nb::device::cpu> array;
            if (!nb::try_cast(value, array, false)) return false;
            values.assign(array.data(), array.data() + array.size());
            field.values = std::move(values);
            return true;
        };
        if (!read(std::vector<double>()) && !read(std::vector<std::int64_t>()) && !read(std::vector<std::uint64_t>()) &&
            !read(std::vector<std::uint8_t>()) && !read(std::vector<float>()))
            throw nb::type_error(("the saved field '" + name + "' is no array of numbers").c_str());
        fields.emplace_back(name, std::move(field));
    }
    return Archive(std::move(fields));
}

}  // namespace gristmill::bind
