// The C interface that core.js calls. A function that may fail returns 0, and gm_error() says why; results of the last call
// are in one buffer (gm_numbers, gm_count) until the next one. There is one thread, so nothing here is locked.
#include <cstdlib>
#include <cstring>

#include "web/blake2b.hpp"
#include "web/model.hpp"

#define GM_EXPORT(name) extern "C" __attribute__((export_name(#name), used)) auto name

namespace {

using namespace gristmill;
using namespace gristmill::web;

std::string error;
std::vector<double> numbers;
std::vector<std::pair<std::string, Field>> fields;  // of a model that is being saved or loaded
SavedPoints points;

template <class F>
int guarded(F f) {
    try {
        f();
        return 1;
    } catch (const std::exception& problem) {
        error = problem.what();
        return 0;
    }
}
std::span<const double> span_of(const double* data, std::size_t count) {
    return data ? std::span(data, count) : std::span<const double>();
}

}  // namespace

GM_EXPORT(gm_alloc)(std::size_t bytes)->void* { return std::malloc(bytes); }
GM_EXPORT(gm_free)(void* memory)->void { std::free(memory); }
GM_EXPORT(gm_version)()->const char* { return GRISTMILL_VERSION; }
GM_EXPORT(gm_error)()->const char* { return error.c_str(); }
GM_EXPORT(gm_numbers)()->const double* { return numbers.data(); }
GM_EXPORT(gm_count)()->std::size_t { return numbers.size(); }

// ---- a model: new, or from the fields that gm_put gave ------------------------------------------------------------

GM_EXPORT(gm_new)(const char* settings, int loads)->Model* {
    std::unique_ptr<Model> model;
    guarded([&] {
        std::optional<Archive> saved;
        if (loads) saved.emplace(std::move(fields));
        model = make_model(TextSettings(settings), std::move(saved), points);
    });
    fields.clear();
    points = {};
    return model.release();
}
GM_EXPORT(gm_delete)(Model* model)->void { delete model; }

GM_EXPORT(gm_width)(const Model* model)->std::size_t { return model->width(); }
GM_EXPORT(gm_outputs)(const Model* model)->std::size_t { return model->outputs(); }
GM_EXPORT(gm_classes)(const Model* model)->std::size_t { return model->classes(); }
GM_EXPORT(gm_size)(const Model* model)->std::size_t { return model->size(); }
GM_EXPORT(gm_bytes)(const Model* model)->std::size_t { return model->bytes(); }
GM_EXPORT(gm_seen)(const Model* model)->double { return static_cast<double>(model->seen()); }

// ---- learning and predicting ----------------------------------------------------------------------------------------

GM_EXPORT(gm_learn)(Model* model, const double* rows, std::size_t count, const double* labels, std::size_t labelled,
                    const double* weights, std::size_t classes, int want)
    ->int {
    return guarded([&] {
        numbers.clear();
        model->learn({rows, count * model->width()}, span_of(labels, labelled), span_of(weights, count), classes,
                     want ? &numbers : nullptr);
    });
}
GM_EXPORT(gm_score)(const Model* model, const double* rows, std::size_t count)->int {
    return guarded([&] { numbers = model->score({rows, count * model->width()}); });
}
GM_EXPORT(gm_probabilities)(const Model* model, const double* scores, std::size_t count)->int {
    return guarded([&] { numbers = model->probabilities({scores, count}); });
}
GM_EXPORT(gm_grid)(const Model* model, double left, double right, double top, double bottom, std::size_t columns,
                   std::size_t rows)
    ->int {
    return guarded([&] { model->score(Grid{left, right, top, bottom, columns, rows}, numbers); });
}
// The stored points, oldest first: width numbers, then one coefficient an output, then the position in the stream.
GM_EXPORT(gm_stored)(const Model* model)->int {
    return guarded([&] {
        const Stored all = model->stored();
        const std::size_t width = model->width(), outputs = model->outputs();
        numbers.clear();
        for (std::size_t s = 0; s < all.ids.size(); ++s) {
            numbers.insert(numbers.end(), all.points.data() + s * width, all.points.data() + (s + 1) * width);
            numbers.insert(numbers.end(), all.coefs.data() + s * outputs, all.coefs.data() + (s + 1) * outputs);
            numbers.push_back(static_cast<double>(all.ids[s]));
        }
    });
}

// ---- saving and loading: fields with a name, a type (0 double, 1 int64, 2 uint64, 3 uint8; points also 4 float), a shape ----

GM_EXPORT(gm_save)(const Model* model)->std::size_t {
    fields.clear();
    const int fine = guarded([&] {
        Archive archive = model->save(points);
        fields = std::move(archive.fields);
    });
    return fine ? fields.size() : 0;
}
GM_EXPORT(gm_field_name)(std::size_t at)->const char* { return fields[at].first.c_str(); }
GM_EXPORT(gm_field_type)(std::size_t at)->std::size_t { return fields[at].second.values.index(); }
GM_EXPORT(gm_field_rank)(std::size_t at)->std::size_t { return fields[at].second.shape.size(); }
GM_EXPORT(gm_field_extent)(std::size_t at, std::size_t axis)->std::size_t { return fields[at].second.shape[axis]; }
GM_EXPORT(gm_field_data)(std::size_t at)->const void* {
    return std::visit([](const auto& values) { return static_cast<const void*>(values.data()); },
                      fields[at].second.values);
}
GM_EXPORT(gm_points_data)()->const void* {
    return points.floats.empty() ? static_cast<const void*>(points.doubles.data()) : points.floats.data();
}
GM_EXPORT(gm_put)(const char* name, int type, const void* data, std::size_t count)->void {
    Field field;
    auto take = [&]<class T>(const T* values) { field.values = std::vector<T>(values, values + count); };
    if (type == 0) take(static_cast<const double*>(data));
    else if (type == 1) take(static_cast<const std::int64_t*>(data));
    else if (type == 2) take(static_cast<const std::uint64_t*>(data));
    else take(static_cast<const std::uint8_t*>(data));
    fields.emplace_back(name, std::move(field));
}
GM_EXPORT(gm_put_points)(const void* data, int single, std::size_t rows, std::size_t width)->void {
    points = {};
    points.count = rows;
    if (single) points.floats.assign(static_cast<const float*>(data), static_cast<const float*>(data) + rows * width);
    else points.doubles.assign(static_cast<const double*>(data), static_cast<const double*>(data) + rows * width);
}
// The BLAKE2b digest of 16 bytes, over the bytes that were there.
GM_EXPORT(gm_digest)(const std::uint8_t* bytes, std::size_t count, std::uint8_t* digest)->void {
    Blake2b hash(16);
    hash.update({bytes, count});
    hash.finish({digest, 16});
}
